"""An operation on a home, for one command, and its result."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.app.operations.sessions import session_stats
from hermes_agent.cli.operation import ask
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.output import answering, show, start_json
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import DatabaseUnreachable


def surface(home: Path) -> Surface:
    return Surface(invocation=Invocation(), variables={"HERMES_HOME": str(home)})


def test_the_home_s_own_database_is_opened_and_made_where_there_is_none(tmp_path: Path) -> None:
    stats = ask(surface(tmp_path / "new"), session_stats)

    assert stats.sessions == 0
    assert (tmp_path / "new" / "hermes.db").exists()


def test_the_address_in_the_settings_is_taken_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("store: {url: 'mysql://x'}\n")

    with pytest.raises(DatabaseUnreachable, match="mysql"):
        ask(surface(tmp_path), session_stats)


def test_a_result_is_shown_in_words_or_as_json_and_an_empty_one_is_remarked(capsys: pytest.CaptureFixture[str]) -> None:
    show(["a", "b"], " ".join, nothing="None.")
    show([], " ".join, nothing="None.")
    with answering():
        start_json()
        show([], " ".join, nothing="None.")

    said = capsys.readouterr()
    assert said.out == "a b\n[]\n"
    assert said.err == "None.\n"
