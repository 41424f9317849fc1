"""The real program as a child."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hermes_agent.cli.demo.child import Remark, _event, hermes
from hermes_agent.core.events import Notice, Seen
from hermes_agent.host.paths import Home
from hermes_agent.version import VERSION


def home_of(folder: Path) -> Home:
    return Home(root=folder, base=folder)


async def test_what_is_no_event_is_a_remark(tmp_path: Path):
    async with hermes("--version", home=home_of(tmp_path), folder=tmp_path, variables=os.environ) as watched:
        lines = [line async for line in watched.lines]

    assert lines == [Remark(text=f"hermes {VERSION}")]
    assert watched.child.code == 0


async def test_a_killed_child_ends_its_lines(tmp_path: Path):
    async with hermes("--help", home=home_of(tmp_path), folder=tmp_path, variables=os.environ) as watched:
        watched.kill()
        lines = [line async for line in watched.lines]

    assert lines == []
    assert watched.child.code == 137


async def test_leaving_the_block_ends_the_child(tmp_path: Path):
    async with hermes("--help", home=home_of(tmp_path), folder=tmp_path, variables=os.environ) as watched:
        pass

    assert not watched.child.is_alive


def test_a_line_of_json_is_an_event():
    plain = {"session": "s", "number": 3, "run": "r", "at": 1.5, "event": {"kind": "notice", "text": "hello"}}

    assert _event(json.dumps(plain).encode()) == Seen(
        session="s", number=3, run="r", at=1.5, event=Notice(text="hello")
    )


def test_a_line_that_was_cut_short_is_no_event():
    assert _event(b'{"session": "s", "numb') is None
    assert _event(b"3") is None
    assert _event(b'{"session": "s"}') is None
