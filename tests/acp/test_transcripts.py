"""What editors send, by what is public of them, and the messages of the SDK's own suite."""

import json
import os
import re
from pathlib import Path

import pytest
from acp import schema

from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.version import VERSION
from tests.acp.editor import Json, Raw, lines, raw
from tests.app.place import counting, settle_home, spoken

TRANSCRIPTS = {path.stem: json.loads(path.read_text()) for path in (Path(__file__).parent / "transcripts").glob("*")}
SOURCES = Path(os.environ.get("ACP_JUDGES", "/nowhere")).glob("agent_client_protocol-*/tests/golden/*.json")
GOLDEN = {path.stem: json.loads(path.read_text()) for path in SOURCES}
REGISTRY = Path(__file__).parents[2] / "docs/acp-registry"
REQUESTS = {
    "initialize_request": "initialize",
    "new_session_request": "session/new",
    "prompt_request": "session/prompt",
    "set_session_config_option_request": "session/set_config_option",
}
UNREAD = re.compile("is not right|is missing|is no method")
MODELS = {
    "cancel_notification": schema.CancelNotification,
    "initialize_response": schema.InitializeResponse,
    "new_session_response": schema.NewSessionResponse,
    "set_session_config_option_response": schema.SetSessionConfigOptionResponse,
    "fs_read_text_file_request": schema.ReadTextFileRequest,
    "fs_read_text_file_response": schema.ReadTextFileResponse,
    "fs_write_text_file_request": schema.WriteTextFileRequest,
    "request_permission_request": schema.RequestPermissionRequest,
    "request_permission_response_selected": schema.RequestPermissionResponse,
}


def script(heard: Heard) -> Json:
    steps = [Call("read_file", {"path": "a.txt"}), Call("terminal", {"command": "git push --force origin main"})]
    return steps[spoken(heard)] if spoken(heard) < len(steps) else Say("Over.")


class Replay(Raw):
    """An editor that sends what its transcript says, and answers what the agent asks."""

    def __init__(self, process: Json) -> None:
        super().__init__(process)
        self.asked, self.known = list[str](), set[str]()

    async def next(self, seconds: float = 25) -> Json:
        message = await super().next(seconds)
        if message and "method" in message:
            assert message["params"]["sessionId"] in self.known, "of a session that the editor does not know yet"
            if "id" in message:
                self.asked.append(message["method"])
                await self.send({"jsonrpc": "2.0", "id": message["id"], "result": self.answer_to(message)})
        return message

    def answer_to(self, message: Json) -> Json:
        if message["method"] == "fs/read_text_file":
            return {"content": "white tea\n"}
        option = message["params"]["options"][-1]["optionId"]
        return {"outcome": {"outcome": "selected", "optionId": option}}


@pytest.mark.parametrize("name", sorted(TRANSCRIPTS))
async def test_an_editor_is_answered_throughout_and_asked_only_what_it_knows(tmp_path: Path, name: str):
    transcript, work = TRANSCRIPTS[name], tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("green tea\n")
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        bare = raw(home.root, work, without=("HOME",))
        async with lines(home.root) if "HOME" in transcript["variables"] else bare as agent:
            editor, session, ends = Replay(agent.process), "", list[str]()
            for method, params in transcript["steps"]:
                text = json.dumps(params).replace("$CWD", str(work)).replace("$SESSION", session)
                said = await editor.ask(method, json.loads(text))
                assert "result" in said, (method, said)
                session = said["result"].get("sessionId", session)
                editor.known.add(session)
                ends += [said["result"]["stopReason"]] if method == "session/prompt" else []

    assert set(ends) == {"end_turn"}
    assert set(editor.asked) == {"session/request_permission", "fs/read_text_file"}


async def test_the_registry_finds_a_manifest_of_this_version_and_a_way_in(tmp_path: Path):
    manifest = json.loads((REGISTRY / "agent.json").read_text())
    icon = (REGISTRY / "icon.svg").read_text()
    async with lines(tmp_path / "home") as agent:
        validator = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
        said = await agent.ask("initialize", {"protocolVersion": 1, "clientCapabilities": validator})

    assert manifest["version"] == VERSION
    assert manifest["distribution"]["uvx"]["package"] == f"hermes-runtime[acp]=={VERSION}"
    assert manifest.keys() >= {"id", "name", "description", "license_url"}
    assert 'width="16" height="16"' in icon
    assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', icon)) == {"currentColor"}
    assert {each.get("type", "agent") for each in said["result"]["authMethods"]} & {"agent", "terminal"}


def kept_of(name: str, value: Json) -> None:
    """Read a message that this program sends, or gets as an answer."""
    if name.startswith("session_update_"):
        schema.SessionNotification.model_validate({"sessionId": "a", "update": value})
    elif name.startswith("tool_content_"):
        schema.ToolCallUpdate.model_validate({"toolCallId": "a", "content": [value]})
    elif name.startswith("permission_outcome_"):
        schema.RequestPermissionResponse.model_validate({"outcome": value})
    elif name not in REQUESTS and not name.startswith("content_"):
        MODELS[name].model_validate(value)


@pytest.mark.skipif(not GOLDEN, reason="the sources of the SDK are not here")
async def test_every_message_of_the_sdks_suite_is_understood(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with lines(home.root) as agent:
            await agent.ask("initialize", {"protocolVersion": 1})
            made = await agent.ask("session/new", {"cwd": str(work), "mcpServers": []})
            session = made["result"]["sessionId"]
            asked = [(REQUESTS[name], value) for name, value in GOLDEN.items() if name in REQUESTS]
            contents = [value for name, value in GOLDEN.items() if name.startswith("content_")]
            asked += [("session/prompt", {"sessionId": session, "prompt": [value]}) for value in contents]
            said = [await agent.ask(method, params) for method, params in asked]
    for name, value in GOLDEN.items():
        kept_of(name, value)

    assert [each for each in said if UNREAD.search(each.get("error", {}).get("message", ""))] == []
    assert len(GOLDEN) >= 36
