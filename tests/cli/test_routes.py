"""Which model a command means."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.cli.options import Invocation
from hermes_agent.cli.routes import single
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import NoModel


def test_a_mixture_works_for_no_purpose(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("moa:\n  council:\n    members: [demo/scripted, demo/scripted]\n")
    surface = Surface(invocation=Invocation(), variables={"HERMES_HOME": str(tmp_path)})

    assert single(surface, "demo/scripted").name == "demo/scripted"
    with pytest.raises(NoModel, match="name a single model"):
        single(surface, "moa/council")
