"""`hermes doctor`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Content, Letter, SlotState
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
    assert checked(home, "--offline")[1]["place"]["found"] == "local, without a jail"

    (home / "config.yaml").write_text("terminal:\n  jail: any\n")
    jailed = checked(home, "--offline")[1]["place"]
    assert jailed["found"].startswith("local, jailed by ") or "cannot be jailed here" in jailed["todo"]

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
