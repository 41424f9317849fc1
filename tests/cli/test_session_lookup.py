"""The store of a home, for one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.cli.options import Invocation
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import DatabaseUnreachable


def surface(home: Path) -> Surface:
    return Surface(invocation=Invocation(), variables={"HERMES_HOME": str(home)})


def test_the_home_s_own_database_is_opened_and_made_where_there_is_none(tmp_path: Path) -> None:
    stats = with_store(surface(tmp_path / "new"), lambda store: store.sessions.stats())

    assert stats.sessions == 0
    assert (tmp_path / "new" / "hermes.db").exists()


def test_the_address_in_the_settings_is_taken_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("store: {url: 'mysql://x'}\n")

    with pytest.raises(DatabaseUnreachable, match="mysql"):
        with_store(surface(tmp_path), lambda store: store.sessions.stats())
