"""The promises about what the agent cannot do, and the probes that try to break them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_agent.app.operations.security import PROMISES, Finding, probe
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.walls import Walls
from hermes_agent.tools.settings import TerminalSettings


async def found(folder: Path, **settings: object) -> dict[str, Finding]:
    home = Home(root=folder / "home", base=folder / "home")
    home.root.mkdir()
    findings = await probe(home, TerminalSettings(**settings), os.environ, "p1")
    assert list(home.root.glob("canary")) == []
    return {each.promise.name: each for each in findings}


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_behind_a_wall_every_promise_holds(tmp_path: Path, kind: str):
    try:
        jail_of(kind, Walls())
    except CannotJail as reason:
        pytest.skip(f"no {kind} here: {reason}")

    findings = await found(tmp_path, jail=kind)

    assert [
        (each.promise.name, each.found) for each in findings.values() if each.state not in ("holds", "tested")
    ] == []
    assert {each.promise.name for each in findings.values() if each.state == "holds"} == {
        each.name for each in PROMISES if each.probe
    }
    assert findings["home"].kept_by == kind


async def test_without_a_wall_the_probes_find_what_is_only_a_hint(tmp_path: Path):
    findings = await found(tmp_path, jail="none")

    open_ = {name for name, each in findings.items() if each.state == "hint"}
    assert {"home", "files", "network", "sockets", "processes"} <= open_
    assert findings["environment"].state == "holds"
    assert findings["home"].kept_by == "no wall: a hint: reading it asks"
    assert not (Path.home() / ".profile-canary").exists()
