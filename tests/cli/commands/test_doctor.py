"""`hermes doctor`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hermes_agent.cli.commands.doctor import State, auxiliary, database, home, keys, model, python, settings, tools
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.core.chat import Content, Conversation, Letter, SlotState
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.database import open_store
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.kept import filled
from tests.cli.shell import typed


def checked(home: Path, *words: str, **variables: str) -> tuple[int, dict[str, dict[str, str]]]:
    said = typed(home, "doctor", "--json", *words, **variables)
    return said.code, {check["name"]: check for check in json.loads(said.out)}


def test_a_home_that_works_is_all_well(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=())) as server:
        code, checks = checked(filled(tmp_path / "h"), OPENAI_API_KEY="k" * 20, OPENAI_BASE_URL=server.url)

    assert code == 0
    assert {checks[name]["state"] for name in ("python", "home", "config", "keys", "database", "model")} == {"ok"}
    assert checks["database"]["found"].startswith("SQLite 3.")


def test_what_is_wrong_is_named_with_what_to_do(tmp_path: Path) -> None:
    home = filled(tmp_path / "h")
    (home / "config.yaml").write_text("modle: 1\n")
    (home / ".env").write_text("A=1\n")
    (home / ".env").chmod(0o644)
    home.chmod(0o755)

    code, checks = checked(home)

    assert code == 1
    assert "unknown setting `modle`" in checks["config"]["found"]
    assert checks["home mode"]["todo"] == f"chmod 700 {home}"
    assert "can be read by others" in checks["keys file"]["found"]
    assert "hermes setup" in checks["model"]["todo"]


def test_a_damaged_database_is_found(tmp_path: Path) -> None:
    home = filled(tmp_path / "h")
    (home / "hermes.db").write_bytes(b"this is no database" * 1000)

    code, checks = checked(home, "--offline")

    assert code == 1
    assert checks["database"]["state"] == "fail"
    assert "model" not in checks


def test_a_home_that_cannot_be_used_ends_the_examination(tmp_path: Path) -> None:
    (tmp_path / "h").write_text("a file")

    code, checks = checked(tmp_path / "h")

    assert code == 1
    assert "a file stands where a folder must be" in checks["home"]["todo"]
    assert "database" not in checks


def test_the_answer_for_a_person_is_a_table_and_what_to_do(tmp_path: Path) -> None:
    said = typed(tmp_path, "doctor", "--offline")

    assert said.out.startswith("ok")
    assert "keys: `hermes setup` finds or asks for one" in said.out
    assert "\x1b" not in said.out


def test_the_place_of_commands_is_tried_and_its_jail_named(tmp_path: Path) -> None:
    home = filled(tmp_path / "h")
    assert checked(home, "--offline")[1]["place"]["found"].startswith(("local, jailed by ", "local, without a jail"))

    (home / "config.yaml").write_text("terminal:\n  jail: none\n")
    assert checked(home, "--offline")[1]["place"]["found"] == "local, without a jail"

    (home / "config.yaml").write_text("terminal:\n  place: ssh\n")
    checks = checked(home)[1]
    assert checks["place"]["state"] == "fail"
    assert "terminal.ssh.host" in checks["place"]["todo"]
    assert "place" not in checked(home, "--offline")[1]


def test_a_memory_beside_the_notes_is_asked_too(tmp_path: Path) -> None:
    home = filled(tmp_path / "h")
    (home / "config.yaml").write_text("memory:\n  provider: holographic\n")
    _, checks = checked(home)
    assert (checks["memory"]["state"], checks["memory"]["found"]) == ("ok", "holographic: 0 facts")
    (home / "config.yaml").write_text("memory:\n  provider: openviking\n  provider_url: http://127.0.0.1:9\n")

    _, checks = checked(home)

    assert checks["memory"]["state"] == "fail"
    assert "cannot be reached" in checks["memory"]["found"]


def test_a_message_that_could_not_be_delivered_is_named(tmp_path: Path) -> None:
    home = filled(tmp_path / "h")

    async def fail() -> None:
        store = await open_store(home / "hermes.db")
        letter = Letter(key="k", to=Conversation(platform="telegram", chat="7"), content=Content(text="Hi"))
        await store.write(lambda tx: store.outbox.put(tx, letter))
        (slot,) = await store.outbox.claim(["telegram"])
        await store.outbox.complete(slot, SlotState.FAILED, (), error="a defect in this program")
        await store.close()

    asyncio.run(fail())

    code, checks = checked(home, "--offline")

    assert (code, checks["outbox"]["state"]) == (0, "warn")
    assert checks["outbox"]["found"] == ("message 1 for telegram chat 7 was not delivered: a defect in this program")


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
