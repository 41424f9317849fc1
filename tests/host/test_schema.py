"""Settings classes, described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from hermes_agent.host.schema import Problem, describe, find, fingerprint, setting, walk
from tests.host.settings_for_tests import AgentSettings, Settings


def test_every_leaf_has_its_dotted_key() -> None:
    assert [key for key, entry in walk(Settings) if entry.schema is None] == [
        "version",
        "model.default",
        "model.fallbacks",
        "model.stall_seconds",
        "agent.max_turns",
        "agent.max_money",
        "agent.busy",
        "agent.effort",
        "servers.NAME.base_url",
        "servers.NAME.headers",
        "jailed",
        "reach",
        "toolsets",
        "extra",
    ]
    assert [key for key, entry in walk(Settings) if entry.schema is not None] == ["model", "agent", "servers"]


def test_a_setting_says_what_may_stand_there() -> None:
    expected = {key: entry.expected for key, entry in walk(Settings)}

    assert expected["agent.max_turns"] == "a whole number from 1 to 1000"
    assert expected["agent.max_money"] == "a number, at least 0 (or nothing)"
    assert expected["agent.busy"] == "one of steer, queue"
    assert expected["reach"] == "one of some, on, true or false, or a list of texts"
    assert expected["servers.NAME.headers"] == "names with a text each"


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("agent", True),
        ("servers.any.base_url", True),
        ("servers.any", True),
        ("jailed.x", False),
        ("servers.any.x", False),
    ],
)
def test_a_key_is_found_below_names_that_a_person_chose(key: str, found: bool) -> None:
    assert (find(Settings, key) is not None) == found


def test_the_fingerprint_changes_with_the_schema_alone() -> None:
    assert fingerprint(Settings) == fingerprint(Settings)
    assert fingerprint(Settings) != fingerprint(AgentSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDefault:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSuchKind:
    name: complex = 1j


@pytest.mark.parametrize("schema", [NoDefault, NoSuchKind])
def test_a_class_that_no_file_can_hold_is_a_defect(schema: type) -> None:
    with pytest.raises(TypeError):
        describe(schema)


def test_a_setting_holds_what_a_manual_page_needs() -> None:
    made: Any = setting(3, "Words.", least=1)

    assert (made.default, made.metadata) == (3, {"doc": "Words.", "least": 1, "most": None, "form": ""})


def test_a_problem_is_written_so_that_an_editor_finds_the_line() -> None:
    assert str(Problem(file="config.yaml", line=3, text="wrong.")) == "config.yaml:3: wrong."
    assert str(Problem(file="config.yaml", line=0, text="wrong.")) == "config.yaml: wrong."
