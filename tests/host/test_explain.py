"""One setting, explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError
from hermes_agent.host.config import load
from hermes_agent.host.explain import explain, known, source_of
from hermes_agent.host.schema import plain_at
from tests.host.settings_for_tests import Settings, home_at


def test_a_setting_is_explained_with_its_source(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("agent:\n  max_turns: 5\n")

    found, value, source, default = explain(load(home, Settings, {}), Settings, "agent.max_turns")

    assert (value, source, default) == (5, "config.yaml:2", 90)
    assert (found.expected, found.doc) == ("a whole number from 1 to 1000", "Model calls of one run.")


def test_a_section_is_explained_as_a_whole(tmp_path: Path) -> None:
    _, value, source, default = explain(load(home_at(tmp_path), Settings, {}), Settings, "model")

    assert value == default == {"default": "", "fallbacks": [], "stall_seconds": 60.0}
    assert source == "default"


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean `agent\.max_turns`"):
        known(Settings, "agent.maxturns")


def test_an_old_key_names_the_one_it_has_now() -> None:
    with pytest.raises(ConfigError, match=r"There is no setting `runs`\. Did you mean `agent`"):
        known(Settings, "runs")


def test_nothing_stands_under_a_path_that_leads_nowhere() -> None:
    assert plain_at({"a": {"b": 1}}, "a.b") == 1
    assert plain_at({"a": 1}, "a.b.c") is None


def test_what_stands_in_a_setting_of_free_names_comes_from_where_that_stands(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("model: {default: x}\n")
    loaded = load(home, Settings, {})

    assert source_of(loaded, "model.default") == source_of(loaded, "model.default.more") == "config.yaml:1"
    assert source_of(loaded, "agent.max_turns") == "default"
