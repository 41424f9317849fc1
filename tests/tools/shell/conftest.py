"""The shell tools on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import scrubbed
from hermes_agent.tools.schema import collect
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.shell import ShellTools
from tests.tools.bench import Bench


@pytest.fixture
def make_shell(tmp_path: Path, workspace: Path) -> Callable[..., Bench]:
    """Makes the shell tools as each process makes them: what they share is on disk."""

    def make(session: str = "s1", **settings: int) -> Bench:
        place = LocalPlace(folder=tmp_path / "exec", env=scrubbed(os.environ))
        tools, aside = collect([ShellTools(place=place, settings=TerminalSettings(**settings))])
        assert not aside
        bench = Bench(tools, workspace, session)
        bench.location = lambda: place.location(str(workspace))
        return bench

    return make
