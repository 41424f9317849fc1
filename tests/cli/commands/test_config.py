"""`hermes config`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import click
import pytest

from hermes_agent.core.errors import ConfigError, HermesError
from tests.cli.shell import Said, typed
from tests.host.settings_for_tests import Settings


def config(home: Path, *words: str, **more: str) -> Said:
    return typed(home, "config", *words, schema=Settings, **more)


def test_settings_are_shown_with_their_source(tmp_path: Path) -> None:
    config(tmp_path, "set", "agent.max_turns", "5")

    said, whole = config(tmp_path, "show"), config(tmp_path, "show", "--all")

    rows = [line.split() for line in whole.out.splitlines()]
    assert rows[1] == ["agent.max_turns", "5", "config.yaml:2"], "what is set stands first"
    assert ["agent.busy", "steer", "default"] in rows
    assert len(said.out.splitlines()) == 2
    assert "more have their default: `hermes config show --all`" in said.err
    assert "\x1b" not in said.out


def test_show_as_json_is_one_object(tmp_path: Path) -> None:
    config(tmp_path, "set", "jailed", "true")

    facts = json.loads(config(tmp_path, "show", "--json").out)

    assert facts["settings"]["jailed"] is True
    assert facts["sources"] == {"jailed": "config.yaml:1"}
    assert facts["problems"] == []


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    key = "sk-live-" + "a" * 24
    config(tmp_path, "set", "SOME_API_KEY", "kept-in-env-file")
    config(tmp_path, "set", "servers.mine.headers", "{Authorization: Bearer-hidden, x-plain: shown}")
    config(tmp_path, "set", "model.default", f"kept-in-env-file {key}")

    for words in (["show"], ["show", "--json"], ["explain", "servers"], ["explain", "model.default", "--json"]):
        said = config(tmp_path, *words)
        assert not any(secret in said.out + said.err for secret in ("kept-in-env-file", "Bearer-hidden", key))
    assert "shown" in config(tmp_path, "show").out
    assert "SOME_API_KEY is set in .env" in config(tmp_path, "show").err


def test_one_value_is_printed_alone(tmp_path: Path) -> None:
    assert config(tmp_path, "get", "agent.max_turns").out == "90\n"
    assert config(tmp_path, "get", "agent.busy").out == "steer\n"
    assert config(tmp_path, "get", "toolsets").out == '["core"]\n'


def test_what_is_set_is_told_back(tmp_path: Path) -> None:
    assert config(tmp_path, "set", "agent.busy", "queue").out == "agent.busy = queue  (config.yaml:2)\n"
    assert config(tmp_path, "unset", "agent.busy").out == "agent.busy is no longer set.\n"
    assert config(tmp_path, "unset", "agent.busy").out == "agent.busy was not set.\n"


def test_a_setting_that_the_environment_overrides_is_told(tmp_path: Path) -> None:
    said = config(tmp_path, "set", "model.default", "a/b", HERMES_MODEL="c/d")

    assert said.out == "model.default = c/d  (environment (HERMES_MODEL))\n"


def test_a_key_is_asked_for_and_not_echoed(tmp_path: Path) -> None:
    said = typed(tmp_path, "config", "set", "SOME_API_KEY", stdin="typed-secret\n", schema=Settings)

    assert "typed-secret" not in said.out + said.err
    assert (tmp_path / ".env").read_text() == "SOME_API_KEY=typed-secret\n"
    assert config(tmp_path, "unset", "SOME_API_KEY").out == "SOME_API_KEY is no longer set.\n"


def test_a_value_that_is_missing_or_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="missing"):
        config(tmp_path, "set", "jailed")
    with pytest.raises(ConfigError, match="takes true or false"):
        config(tmp_path, "set", "jailed", "maybe")
    with pytest.raises(ConfigError, match=r"Did you mean `agent\.max_turns`"):
        config(tmp_path, "get", "agent.maxturns")


def test_a_mistake_is_checked_with_its_line_and_exit_code(tmp_path: Path) -> None:
    assert config(tmp_path, "check").out.endswith("no errors (there is no file: defaults)\n")
    (tmp_path / "config.yaml").write_text("jailed: true\nmodle: {}\n")

    said = config(tmp_path, "check")

    assert said.code == 4
    assert said.out == f"{tmp_path}/config.yaml:2: unknown setting `modle`. Did you mean `model`?\n"
    assert said.err.startswith("It was never valid, so nothing runs: ")
    assert "unknown setting" in config(tmp_path, "show").err


def test_a_setting_is_explained(tmp_path: Path) -> None:
    said = config(tmp_path, "explain", "agent.max_turns")

    assert said.out.splitlines() == [
        "Model calls of one run.",
        "value    90",
        "from     default",
        "default  90",
        "takes    a whole number from 1 to 1000",
    ]


def editor(tmp_path: Path, text: str) -> str:
    """A program that writes `text` over the file that it is given."""
    script = tmp_path / "editor.py"
    script.write_text(f"import sys\nopen(sys.argv[1], 'w').write({text!r})\n")
    return f"{sys.executable} {script}"


def test_an_edited_file_that_is_right_is_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, "jailed: true  # mine\n"))

    said = config(tmp_path / "home", "edit")

    assert said.code == 0
    assert (tmp_path / "home" / "config.yaml").read_text() == "jailed: true  # mine\n"


def test_an_edited_file_that_is_wrong_is_kept_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, "jailed: perhaps\n"))

    said = typed(tmp_path / "home", "config", "edit", stdin="n\n", schema=Settings)

    assert said.code == 4
    assert "takes true or false" in said.err
    assert not (tmp_path / "home" / "config.yaml").exists()
    assert (tmp_path / "home" / "cache" / "config.edit.yaml").read_text() == "jailed: perhaps\n"


def test_a_channel_or_an_option_of_one_that_there_is_not_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "gateway:\n  channels:\n    telegrm:\n      enabled: true\n    telegram:\n      options:\n        api_ulr: x\n"
    )

    said = typed(tmp_path, "config", "check")

    assert said.code == 4
    assert f"{tmp_path / 'config.yaml'}:4: There is no channel `telegrm`. Did you mean `telegram`?" in said.out
    assert "`telegram` has no option `api_ulr`. Did you mean `api_url`?" in said.out


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("gateway.channels.carrier.enabled", "true", "There is no channel `carrier`. There are: discord, "),
        ("gateway.channels.telegram.owners", "@me", "`@me` is no id of Telegram: it is a number"),
        ("gateway.channels.telegram.options.api", "x", "has no option `api`"),
        ("agent.max_turns", "-4", "a whole number, at least 1, not `-4`"),
        ("model.base_url", "not-a-url", "takes an address such as http://127.0.0.1:8000/v1, not `not-a-url`"),
        ("model.provider", "foo/bar", "No vendor is called `foo/bar`"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(tmp_path: Path, key: str, value: str, why: str) -> None:
    with pytest.raises(HermesError, match=re.escape(why)):
        typed(tmp_path, "config", "set", key, value)
    assert not (tmp_path / "config.yaml").exists()
    assert typed(tmp_path, "config", "set", "gateway.channels.telegram.owners", "4711").err == ""


def test_a_wrong_word_is_told_the_near_key_and_a_key_where_it_belongs(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("modle:\n  default: x\nopenai_api_key: y\nmodel:\n  base_url: nowhere\n")
    said = typed(tmp_path, "config", "check")

    assert "unknown setting `modle`. Did you mean `model`?" in said.out
    assert "Keys belong into .env: `hermes config set OPENAI_API_KEY` saves one there." in said.out
    assert "`model.base_url` takes an address such as http://127.0.0.1:8000/v1, but `nowhere` stands here." in said.out
