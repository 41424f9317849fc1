"""`hermes kanban` on the command line."""

import json
from pathlib import Path

import pytest

from hermes_agent.app.operations.kanban import KANBAN
from hermes_agent.core.errors import HermesError
from tests.cli.shell import typed


def test_there_is_a_verb_for_each_thing_to_do():
    wanted = "add show list update remove assign move comment block unblock start complete cancel archive stats"
    assert {verb.name for verb in KANBAN.verbs} >= {*wanted.split(), "link", "attach", "log", "runs", "watch", "boards"}


def test_a_card_is_created_listed_and_shown_also_as_json(tmp_path: Path):
    home = tmp_path / "home"
    said = typed(home, "kanban", "create", "Tidy up\x1b[31m", "--priority", "0", "--hold", "--json")
    card = json.loads(said.out)
    assert (card["status"], card["priority"], card["title"]) == ("blocked", 0, "Tidy up\x1b[31m")
    listed = typed(home, "kanban", "list").out
    assert "Tidy up\N{REPLACEMENT CHARACTER}[31m" in listed
    assert "hermes worker" in listed
    assert json.loads(typed(home, "kanban", "show", card["id"], "--json").out)["card"]["id"] == card["id"]
    assert typed(home, "kanban", "unblock", card["id"]).out == f"{card['id']} is ready.\n"
    assert typed(home, "kanban", "export").out.startswith('{"_type": "issue"')
    with pytest.raises(HermesError, match="There is no profile"):
        typed(home, "kanban", "create", "x", "--assignee", "nobody")


def test_a_profile_sees_the_same_board(tmp_path: Path):
    home = tmp_path / "home"
    card = json.loads(typed(home, "kanban", "create", "Shared", "--hold", "--json").out)["id"]
    assert card in typed(home, "-p", "ann", "kanban", "list").out
