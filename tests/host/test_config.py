"""What a settings file gives, whatever is in it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError
from hermes_agent.host.config import Loaded, load
from tests.host.settings_for_tests import Busy, Settings, home_at


def loaded(tmp_path: Path, text: str | bytes, **variables: str) -> Loaded[Settings]:
    home = home_at(tmp_path / "home")
    home.config_file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(home, Settings, variables)


def test_without_a_file_all_is_default(tmp_path: Path) -> None:
    result = load(home_at(tmp_path / "home"), Settings, {})

    assert result.value == Settings()
    assert (result.basis, result.problems, result.sources) == ("defaults", (), {})


def test_each_kind_of_value_is_read_with_its_line(tmp_path: Path) -> None:
    text = """\
version: 1
model:
  default: 1.10
  fallbacks: [a/b, c/d]
  stall_seconds: 5
agent:
  max_turns: 12
  max_money: 2.5
  busy: queue
  effort: off
servers:
  mine: {base_url: "http://127.0.0.1:1", headers: {x: "1"}}
  empty:
jailed: true
toolsets: []
extra: {deep: [1, {x: null}, 2.5, yes, text]}
"""

    result = loaded(tmp_path, text)

    assert result.problems == ()
    value = result.value
    assert value.model.default == "1.10", "a text is taken as it is written"
    assert value.model.fallbacks == ("a/b", "c/d")
    assert value.model.stall_seconds == 5.0
    assert (value.agent.max_turns, value.agent.max_money, value.agent.busy) == (12, 2.5, Busy.QUEUE)
    assert value.agent.effort == "off", "a choice called off is a word"
    assert value.servers["mine"].headers == {"x": "1"}
    assert value.servers["empty"].base_url == ""
    assert value.jailed is True
    assert value.toolsets == []
    assert value.extra == {"deep": [1, {"x": None}, 2.5, True, "text"]}
    assert result.sources["agent.max_turns"] == "config.yaml:7"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "model:\n", "---\n", "\ufeffjailed: false\n", "~\n"])
def test_an_empty_file_or_section_is_all_defaults(tmp_path: Path, text: str) -> None:
    result = loaded(tmp_path, text)

    assert (result.value, result.problems, result.basis) == (Settings(), (), "file")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    result = loaded(tmp_path, "jailed: 5\nmodle: {}\nagent: {max_turns: 0}\n")

    assert [problem.line for problem in result.problems] == [1, 2, 3]
    assert "(and 2 more: `hermes config check`)" in result.notice
    with pytest.raises(ConfigError, match=r"config\.yaml:2: unknown setting `modle`"):
        result.strict()


def test_a_broken_file_keeps_the_last_good_settings(tmp_path: Path) -> None:
    loaded(tmp_path, "agent: {max_turns: 7}\n")

    result = loaded(tmp_path, "agent: {max_turns: 7\njailed")

    assert result.basis == "last good"
    assert result.value.agent.max_turns == 7
    assert result.sources == {"agent.max_turns": "the last good config.yaml"}
    assert result.notice.endswith("The last good settings are used.")


def test_last_good_settings_of_another_version_keep_what_still_fits(tmp_path: Path) -> None:
    loaded(tmp_path, "agent: {max_turns: 7}\njailed: true\n")
    kept_file = tmp_path / "home" / "cache" / "config.last-good.json"
    kept = json.loads(kept_file.read_text())
    kept |= {"schema": "another", "text": kept["text"] + "gone: 1\n", "values": {"gone": 1}}
    kept_file.write_text(json.dumps(kept))

    result = loaded(tmp_path, ":::")

    assert (result.value.agent.max_turns, result.value.jailed) == (7, True)


@pytest.mark.parametrize("kept", ["", "{", "[]", '{"text": 5}', '{"text": "", "values": [], "lines": {}}'])
def test_damaged_last_good_settings_are_none(tmp_path: Path, kept: str) -> None:
    home = home_at(tmp_path / "home")
    home.last_good_config.write_text(kept)

    result = loaded(tmp_path, "jailed: [")

    assert (result.basis, result.value) == ("defaults", Settings())
    with pytest.raises(ConfigError, match="never valid"):
        result.usable()


def test_a_changed_file_is_read_anew_even_at_the_same_size_and_time(tmp_path: Path) -> None:
    first = loaded(tmp_path, "agent: {max_turns: 7}\n")
    file = tmp_path / "home" / "config.yaml"
    stamp = file.stat().st_mtime_ns
    file.write_text("agent: {max_turns: 8}\n")
    os.utime(file, ns=(stamp, stamp))

    second = load(home_at(tmp_path / "home"), Settings, {})

    assert (first.value.agent.max_turns, second.value.agent.max_turns) == (7, 8)


def test_the_same_file_gives_the_same_from_memory(tmp_path: Path) -> None:
    text = "agent: {max_turns: 7, busy: queue}\nservers: {a: {base_url: u}}\nextra: {x: [1]}\ntoolsets: [t]\n"
    first = loaded(tmp_path, text)
    second = loaded(tmp_path, text)

    assert second == first


def test_the_model_may_be_said_by_the_environment(tmp_path: Path) -> None:
    result = loaded(tmp_path, "model: {default: a/b}\n", HERMES_MODEL="c/d")

    assert result.value.model.default == "c/d"
    assert result.sources["model.default"] == "environment (HERMES_MODEL)"


def test_a_folder_in_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    home.config_file.mkdir()

    result = load(home, Settings, {})

    assert "is a folder, not a file" in result.notice


def test_a_pipe_in_place_of_the_file_does_not_hang(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    os.mkfifo(home.config_file)

    result = load(home, Settings, {})

    assert "is a device or pipe, not a file" in result.notice


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    result = loaded(tmp_path, "#" * (1 << 21))

    assert "more than the 1,048,576 that are read" in result.notice
