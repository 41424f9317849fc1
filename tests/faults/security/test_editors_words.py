"""Payloads in all that an editor or an MCP client gives: nothing of them is learned, whatever the model saves."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from acp import schema

from hermes_agent.acp.serve import connected
from hermes_agent.app.system import System
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from tests.acp.editor import Client, capabilities, talking
from tests.app.place import settle_home
from tests.faults.security.lessons import PAYLOADS, disguised
from tests.faults.security.test_labels import live
from tests.learning.harness import Script, note, skill
from tests.mcp_server.clients import connected as client_of, said

FORMS = [form for text in PAYLOADS for form in disguised(text).values()]
ROOMY = "memory:\n  memory_char_limit: 100000\n  user_char_limit: 100000\n  nudge_interval: 1\n"
Block = Any


def words(text: str) -> Block:
    return schema.TextContentBlock(type="text", text=text)


def embedded(uri: str, text: str) -> Block:
    found = schema.TextResourceContents(uri=uri, text=text)
    return schema.EmbeddedResourceContentBlock(type="resource", resource=found)


def blob(text: str) -> Block:
    data = base64.b64encode(text.encode()).decode()
    found = schema.BlobResourceContents(uri="file:///else/page.txt", blob=data, mime_type="text/plain")
    return schema.EmbeddedResourceContentBlock(type="resource", resource=found)


WAYS: dict[str, Callable[[str, Path], list[Block]]] = {
    "link": lambda text, _: [
        schema.ResourceContentBlock(
            type="resource_link", uri=f"file:///{quote(text)}", name=text, title=text, description=text
        )
    ],
    "address": lambda text, _: [schema.ResourceContentBlock(type="resource_link", uri=f"zed://{text}", name="x")],
    "embedded": lambda text, work: [embedded(f"{work.as_uri()}/notes.md", text)],
    "embedded elsewhere": lambda text, _: [embedded("https://x.test/page", text)],
    "its name": lambda text, work: [embedded(f"{work.as_uri()}/{quote(text)}", "Nothing.")],
    "file": lambda text, _: [blob(text)],
    "buffer": lambda *_: [],
}
QUICK = ("link", "embedded", "buffer")


@asynccontextmanager
async def edited(folder: Path, script: Script, client: Client) -> AsyncIterator[tuple[Any, System, ModelServer]]:
    """An editor in front of the system, which reviews when it is told to."""
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(folder / "home", server.url, ROOMY)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            handles = theirs.fileno(), os.dup(theirs.fileno())
            async with (
                connected(Home(root=home.root, base=home.root), handles) as (agent, _),
                talking(client, ours) as (editor),
            ):
                await editor.initialize(protocol_version=1, client_capabilities=capabilities(False, True))
                yield editor, (await agent.sessions()).system, server
            os.close(handles[1])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", WAYS)
async def test_nothing_that_an_editor_gives_is_learned(tmp_path: Path, way: str, full: bool):
    if not full and way not in QUICK:
        pytest.skip("all ways run with --full")
    script, client, work = Script([]), Client(), tmp_path / "work"
    work.mkdir()
    (work / "open.txt").write_text("Nothing yet.\n")
    async with edited(tmp_path, script, client) as (editor, system, _):
        for number, text in list(enumerate(FORMS))[:: 1 if full else 40]:
            client.buffers[str(work / "open.txt")] = text
            writes = [note(text), skill(f"way-{number}", text)]
            reads = [Call("read_file", {"path": "open.txt"})] if way == "buffer" else []
            script.talk = [*reads, *writes, Say("Kept.")]
            script.clean = script.raw = [*writes, Say("Kept.")]
            session = (await editor.new_session(cwd=str(work), mcp_servers=[])).session_id
            await editor.prompt(session_id=session, prompt=[words("Look at it, please"), *WAYS[way](text, work)])
            await system.learner.run()
            assert live(tmp_path) == "", (way, text)
        waiting = await system.store.proposals.waiting()

    assert waiting


async def test_what_stands_beside_a_prompt_does_not_reach_the_model(tmp_path: Path):
    script, text = Script([Say("Fine.")]), PAYLOADS[0]
    async with edited(tmp_path, script, Client()) as (editor, _, server):
        session = (await editor.new_session(cwd=str(tmp_path), mcp_servers=[], hermes=text)).session_id
        block = schema.TextContentBlock(type="text", text="Hello", field_meta={"note": text})
        await editor.prompt(session_id=session, prompt=[block], hermes=text)

    assert [each for each in server.exchanges if text[:40] in str(each.request)] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_nothing_that_a_client_of_the_mcp_server_says_is_learned(tmp_path: Path, full: bool):
    script = Script([])
    async with client_of(tmp_path, script, more=ROOMY) as (server, client):
        for number, text in list(enumerate(FORMS))[:: 1 if full else 40]:
            writes = [note(text), skill(f"way-{number}", text)]
            script.talk = [*writes, Say("Kept.")]
            script.clean = script.raw = [*writes, Say("Kept.")]
            await said(client, "ask", message=f"Remember this: {text}")
            await server.runtime.learner.run()
            assert live(tmp_path) == "", text
        waiting = await server.runtime.store.proposals.waiting()

    assert waiting
