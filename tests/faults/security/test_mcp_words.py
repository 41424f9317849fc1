"""Payloads in all that an MCP server says: nothing of them is learned, whatever the model saves of what it read."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.app.commands.command import Desk
from hermes_agent.app.commands.mcp import prompt
from hermes_agent.app.opening import Options
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.mcp.servers import read_named
from hermes_agent.core.chat import Inbound
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from tests.app.place import Place
from tests.faults.security.lessons import PAYLOADS, disguised
from tests.faults.security.test_labels import live
from tests.learning.harness import Script, learning_place, note, reviewed, skill

FORMS = [form for text in PAYLOADS for form in disguised(text).values()]
WORDS = Path(__file__).with_name("mcp_words.py")
ROOMY = "memory:\n  memory_char_limit: 100000\n  user_char_limit: 100000\n  nudge_interval: 1\n"
MORE = f"""{ROOMY}mcp_servers:
  s:
    command: {sys.executable}
    args: [{WORDS.name}]
    trust: hints
    effects: {{says: reads, fails: reads, breaks: reads, asks: reads, links: reads, shapes: reads, thinks: reads}}
    sampling: 'on'
  t:
    command: {sys.executable}
    args: [{WORDS.name}, away]
"""


def using(tool: str) -> Callable[[int], Call]:
    return lambda number: Call("use_tool", {"name": tool, "arguments": {"number": number}})


def through(tool: str, **arguments: object) -> Callable[[int], Call]:
    return lambda number: Call(
        "use_tool",
        {"name": tool, "arguments": {"server": "s", **{name: f"{value}{number}" for name, value in arguments.items()}}},
    )


WAYS: dict[str, Callable[[int], Call]] = {
    "descriptions": lambda number: Call("find_tools", {"query": f"way_{number}"}),
    "names": lambda number: Call("find_tools", {"query": FORMS[number][:60]}),
    "results": using("mcp__s__says"),
    "errors of a tool": using("mcp__s__fails"),
    "errors of the protocol": using("mcp__s__breaks"),
    "links": using("mcp__s__links"),
    "shapes": using("mcp__s__shapes"),
    "sampling": using("mcp__s__thinks"),
    "last words": using("mcp__s__dies"),
    "words of who is away": lambda _: Call(
        "use_tool", {"name": "mcp_resource", "arguments": {"action": "list", "server": "t"}}
    ),
    "questions": using("mcp__s__asks"),
    "prompts": lambda number: Call(
        "use_tool",
        {"name": "mcp_prompt", "arguments": {"server": "s", "name": "say", "arguments": {"number": str(number)}}},
    ),
    "lists of prompts": through("mcp_prompt"),
    "resources": through("mcp_resource", action="read", uri="note://"),
    "lists of resources": through("mcp_resource", action="list"),
}


def talking(steps: list[Piece], text: str, heard: Heard) -> Piece:
    """The conversation in steps; where a server asks the model something, its own words."""
    if "A program asks you something" in heard.system:
        return Say(text)
    return steps[heard.turn] if heard.turn < len(steps) else Say("Done.")


async def typed(here: Place, _: int) -> Inbound:
    return here.inbound("Look at it, please")


async def attached(here: Place, number: int) -> Inbound:
    """A message that names a resource."""
    inbound = here.inbound(f"Look at @s:note://{number} please")
    access = Access(system=here.runtime, who=here.runtime.owner, folder=here.record.workspace)
    return replace(inbound, parts=(*inbound.parts, *await read_named(access, inbound.text)))


async def commanded(here: Place, number: int) -> Inbound:
    """A prompt of the server, as a command of the person."""
    desk = Desk(runtime=here.runtime, record=here.record, inbound=here.inbound(f"/mcp__s__say {number}"))
    found = await prompt(desk)
    assert found is not None
    return found


TYPED = {"attached": attached, "commanded": commanded}
WAYS |= dict.fromkeys(TYPED, lambda _: Call("todo", {}))
QUICK = (
    "descriptions",
    "results",
    "errors of the protocol",
    "sampling",
    "last words",
    "words of who is away",
    "attached",
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", WAYS)
async def test_nothing_that_a_server_says_is_learned(tmp_path: Path, way: str, full: bool):
    if not full and way not in QUICK:
        pytest.skip("all ways run with --full")
    script, work = Script([]), tmp_path / "work"
    work.mkdir()
    shutil.copy(WORDS, work)
    (work / "payloads.json").write_text(json.dumps(FORMS))
    async with learning_place(tmp_path, script, more=MORE, options=Options(attended=False)) as here:
        await here.runtime.folders.trust(str(work))
        script.talk = [Call("find_tools", {"query": "says"}), Say("Ready.")]
        await here.say("What is there?")
        for number, text in list(enumerate(FORMS))[:: 1 if full else 40]:
            await here.type("/new")
            writes = [note(text), skill(f"way-{number}", text)]
            steps = [WAYS[way](number), *writes, Say("Kept.")]
            script.talk = partial(talking, steps, text)
            script.clean = script.raw = [*writes, Say("Kept.")]
            await here.say(await TYPED.get(way, typed)(here, number))
            await reviewed(here)
            assert live(tmp_path) == "", (way, text)
        messages = [each for exchange in here.server.exchanges if exchange.heard for each in exchange.heard.messages]

    assert way in ("questions", "commanded") or FORMS[0][:40] in str([message.parts for message in messages])
