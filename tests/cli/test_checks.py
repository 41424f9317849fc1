"""Single checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.cli.checks import State, auxiliary, database, home, keys, model, python, settings, tools
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface


def surface(home: Path, **variables: str) -> Surface:
    return Surface(invocation=Invocation(), variables={"HERMES_HOME": str(home), **variables})


def test_this_python_is_new_enough(tmp_path: Path) -> None:
    assert [check.state for check in python(surface(tmp_path))] == [State.OK]


def test_a_keys_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe")
    here = surface(tmp_path)

    assert "is not UTF-8" in settings(here)[-1].found
    assert keys(here) == []


@pytest.mark.parametrize("model", ["demo/scripted", "ollama/qwen3", "vllm/anything"])
def test_where_the_model_needs_no_key_none_is_missed(tmp_path: Path, model: str) -> None:
    (tmp_path / "config.yaml").write_text(f"model:\n  default: {model}\n")

    (check,) = keys(surface(tmp_path))

    assert (check.state, check.todo) == (State.OK, "")
    assert check.found == f"none; {model} is asked without one"


@pytest.mark.parametrize("model", ["", "anthropic/claude-opus-5-5"])
def test_where_the_model_needs_one_or_there_is_no_model_it_is_missed(tmp_path: Path, model: str) -> None:
    (tmp_path / "config.yaml").write_text(f"model:\n  default: '{model}'\n")

    (check,) = keys(surface(tmp_path))

    assert (check.state, check.found) == (State.WARN, "none")
    assert "`hermes setup`" in check.todo


def test_keys_that_are_there_are_named(tmp_path: Path) -> None:
    (check,) = keys(surface(tmp_path, OPENAI_API_KEY="k"))

    assert (check.state, check.found) == (State.OK, "openai")


def test_models_for_a_purpose_that_cannot_be_asked_are_told(tmp_path: Path) -> None:
    assert auxiliary(surface(tmp_path)) == []
    (tmp_path / "config.yaml").write_text(
        "auxiliary:\n  title:\n    model: ollama/small\n  judge:\n    model: antropic/claude-haiku-4-5\n"
    )

    good, bad = auxiliary(surface(tmp_path))

    assert (good.state, good.found) == (State.OK, "title: ollama/small")
    assert (bad.state, bad.found) == (State.WARN, "judge: antropic/claude-haiku-4-5 cannot be asked")
    assert "`auxiliary.judge.model`" in bad.todo


def test_a_new_home_has_room_and_is_private(tmp_path: Path) -> None:
    assert [check.name for check in home(surface(tmp_path / "new"))] == ["home", "disk"]


async def test_a_database_of_a_later_version_is_told(tmp_path: Path) -> None:
    await database(surface(tmp_path))
    with (tmp_path / "hermes.db").open("r+b") as file:
        file.seek(60)  # the user version, in SQLite's file header
        file.write((9999).to_bytes(4, "big"))

    (check,) = await database(surface(tmp_path))

    assert check.state is State.FAIL
    assert "later version" in check.found


async def test_an_unreachable_model_is_a_failure_that_names_the_route(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: {max_retries: 0, base_url: 'http://127.0.0.1:9/v1', default: m}\n")

    (check,) = await model(surface(tmp_path))

    assert (check.state, check.found) == (State.FAIL, "custom/m")


def test_what_the_model_cannot_do_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: {default: ollama/m}\nmodels: {ollama/m: {tools: false}}\n")
    mute, narrow = tools(surface(tmp_path))

    assert (mute.state, narrow.state) == (State.WARN, State.WARN)
    assert "calls no tools" in mute.found
    assert "a window of 8,192 tokens" in narrow.found
