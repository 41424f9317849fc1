"""Single checks."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.cli.checks import State, database, home, keys, model, python, settings, tools
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
