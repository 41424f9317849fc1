"""Changing single settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from hermes_agent.core.errors import ConfigError
from hermes_agent.host.config import load
from hermes_agent.host.config_edit import (
    explain,
    keys,
    known,
    plain_of,
    replace_text,
    set_value,
    set_values,
    shown,
    source_of,
    unset,
)
from hermes_agent.host.schema import plain_at
from tests.host.settings_for_tests import Settings, home_at

COMMENTED = """\
# mine
version: 1

agent:   # the loop
  max_turns: 12   # enough
  busy: "queue"
toolsets:
- core   # first
- web
"""


def test_setting_a_value_keeps_comments_and_the_rest(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text(COMMENTED)

    set_value(home, Settings, "agent.max_turns", "50")
    set_value(home, Settings, "model.default", "a/b")

    assert home.config_file.read_text() == COMMENTED.replace("12  ", "50  ") + "model:\n  default: a/b\n"
    assert load(home, Settings, {}).value.agent.max_turns == 50
    assert home.config_file.stat().st_mode & 0o777 == 0o600


def test_of_several_settings_all_are_written_or_none(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text(COMMENTED)

    with pytest.raises(ConfigError, match="max_turns"):
        set_values(home, Settings, {"model.default": "a/b", "agent.max_turns": "many"})
    assert home.config_file.read_text() == COMMENTED

    wanted = {"agent.max_turns": "50", "model.default": "a/b"}
    assert set_values(home, Settings, wanted) == {"agent.max_turns": 50, "model.default": "a/b"}
    assert home.config_file.read_text() == COMMENTED.replace("12  ", "50  ") + "model:\n  default: a/b\n"


def test_a_file_of_comments_keeps_them(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("# first\n# second")

    set_value(home, Settings, "jailed", "yes")

    assert home.config_file.read_text() == "# first\n# second\njailed: true\n"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    real = tmp_path / "dotfiles.yaml"
    real.write_text("jailed: true\n")
    home.config_file.symlink_to(real)

    set_value(home, Settings, "agent.max_turns", "3")

    assert home.config_file.is_symlink()
    assert "max_turns: 3" in real.read_text()


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("model.default", "1.10", "1.10"),
        ("model.default", "true", "true"),
        ("model.default", "a: b # c", "a: b # c"),
        ("model.default", "", ""),
        ("toolsets", "a, b", ["a", "b"]),
        ("toolsets", "[a, 'b c']", ["a", "b c"]),
        ("agent.max_money", "2", 2.0),
        ("agent.max_money", "null", None),
        ("agent.effort", "off", "off"),
        ("servers.mine.base_url", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
        ("servers.mine.headers", "{x: y}", {"x": "y"}),
        ("servers.mine.headers.x-key", "on", "on"),
    ],
)
def test_what_was_set_is_what_is_read(tmp_path: Path, key: str, text: str, value: object) -> None:
    home = home_at(tmp_path)

    set_value(home, Settings, key, text)

    loaded = load(home, Settings, {})
    assert loaded.problems == ()
    assert explain(loaded, Settings, key)[1] == value


@settings(max_examples=40, deadline=None)
@example(text="null")
@example(text="~")
@example(text="off")
@example(text="- a: b")
@given(
    text=st.text(
        st.characters(codec="utf-8", exclude_characters="\0\r\x85\u2028\u2029", exclude_categories=["Cc", "Cs"])
    )
)
def test_any_text_survives_the_file(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    home = home_at(tmp_path_factory.mktemp("home"))

    set_value(home, Settings, "model.default", text)

    assert load(home, Settings, {}).value.model.default == text


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("agent.max_turn", "5", "There is no setting `agent.max_turn`. Did you mean `agent.max_turns`?"),
        ("agent.max_turns", "many", "`agent.max_turns` takes a whole number from 1 to 1000, not `many`."),
        ("agent.max_turns", "", "`agent.max_turns` takes a whole number from 1 to 1000, not ``."),
        ("agent.busy", "never", "`agent.busy` takes one of steer, queue, not `never`."),
        ("jailed", "[", "`jailed` takes true or false; `[` cannot be read as that."),
        ("agent", "5", "`agent` is a section; set one of the settings in it."),
        ("", "5", "There is no setting ``."),
        ("servers..base_url", "5", "There is no setting `servers..base_url`."),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_written(
    tmp_path: Path, key: str, text: str, said: str
) -> None:
    home = home_at(tmp_path)

    with pytest.raises(ConfigError) as refused:
        set_value(home, Settings, key, text)

    assert str(refused.value).startswith(said)
    assert not home.config_file.exists()


def test_a_file_with_another_mistake_is_not_written(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("modle: 5\n")

    with pytest.raises(ConfigError, match=r"config\.yaml:1: unknown setting `modle`"):
        set_value(home, Settings, "jailed", "true")

    assert home.config_file.read_text() == "modle: 5\n"


@pytest.mark.parametrize(
    "text", [b"a: [", b"a: 1\na: 2\n", b"\xff\xfea\x00", b"- a\n", b"extra: " + b"[" * 400, b"extra: " + b"[" * 5000]
)
def test_a_file_that_is_no_settings_is_left_alone(tmp_path: Path, text: bytes) -> None:
    home = home_at(tmp_path)
    home.config_file.write_bytes(text)

    with pytest.raises(ConfigError, match="nothing was changed"):
        set_value(home, Settings, "jailed", "true")

    assert home.config_file.read_bytes() == text


def test_a_mistake_can_be_mended_by_setting_or_unsetting_it(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("jailed: 5\n")
    set_value(home, Settings, "jailed", "false")
    home.config_file.write_text("modle: 5\njailed: true\n")

    assert unset(home, Settings, "modle")
    assert home.config_file.read_text() == "jailed: true\n"


def test_unsetting_brings_back_the_default(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("jailed: true\nagent: {max_turns: 5}\n")

    assert unset(home, Settings, "agent.max_turns")
    assert not unset(home, Settings, "agent.busy")
    with pytest.raises(ConfigError, match="Did you mean `agent`"):
        unset(home, Settings, "agnet")

    assert plain_of(load(home, Settings, {}).value) == plain_of(Settings(jailed=True))


def test_a_whole_text_is_taken_only_when_it_is_right(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("jailed: true\n")

    refused = replace_text(home, Settings, b"jailed: maybe\n")
    taken = replace_text(home, Settings, b"jailed: false # no\n")

    assert (len(refused.problems), taken.problems) == (1, ())
    assert home.config_file.read_text() == "jailed: false # no\n"


SETTER = """
import sys
from pathlib import Path
from hermes_agent.host.config_edit import set_value
from tests.host.settings_for_tests import Settings, home_at
home = home_at(Path(sys.argv[1]))
for number in range(15):
    set_value(home, Settings, f"servers.{sys.argv[2]}{number}.base_url", str(number))
"""


def test_two_processes_that_set_at_once_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SETTER, str(tmp_path)]
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen([*command, name], cwd=root, env={"PYTHONPATH": f"{root}/src:{root}"}) for name in ("a", "b")
    ]

    codes = [process.wait() for process in running]

    assert codes == [0, 0]
    assert len(load(home_at(tmp_path), Settings, {}).value.servers) == 30


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


def test_nothing_stands_under_a_path_that_leads_nowhere() -> None:
    assert plain_at({"a": {"b": 1}}, "a.b") == 1
    assert plain_at({"a": 1}, "a.b.c") is None


def test_what_stands_in_a_setting_of_free_names_comes_from_where_that_stands(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("model: {default: x}\n")
    loaded = load(home, Settings, {})

    assert source_of(loaded, "model.default") == source_of(loaded, "model.default.more") == "config.yaml:1"
    assert source_of(loaded, "agent.max_turns") == "default"


def test_what_is_set_is_shown_with_its_source_and_no_secret(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text(COMMENTED)
    loaded = load(home, Settings, {})

    (row,) = shown(loaded, Settings, "agent.max_turns", str.upper)
    assert row[:2] == ("agent.max_turns", "12")
    assert "config.yaml" in row[2]
    assert [name for name, _, _ in shown(loaded, Settings, "", str)] == sorted(loaded.sources)
    assert ("agent.max_turns", "12") in [each[:2] for each in shown(loaded, Settings, "", str)]


def test_every_setting_is_listed_with_what_it_does() -> None:
    listed = dict(keys(Settings))
    assert "agent.max_turns" in listed
    assert "agent" not in listed
    assert all(listed.values())


def test_a_section_that_holds_nothing_any_more_goes_too(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.config_file.write_text("jailed: true\nagent:\n  max_turns: 5\n")

    assert unset(home, Settings, "agent.max_turns")
    assert home.config_file.read_text() == "jailed: true\n"
