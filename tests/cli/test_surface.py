"""What a subcommand is handed."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from tests.host.settings_for_tests import Settings


def test_the_profile_leads_to_its_own_home(tmp_path: Path) -> None:
    surface = Surface(invocation=Invocation(profile="work"), variables={"HERMES_HOME": str(tmp_path), "A_KEY": "x"})
    surface.__dict__["schema"] = Settings

    assert surface.home.root == tmp_path / "profiles" / "work"
    assert surface.loaded.value == Settings()
    assert surface.secrets.get("A_KEY") == "x"
