"""`hermes model credentials`: names and states, never a key."""

import asyncio
import json
from pathlib import Path

from hermes_agent.providers.routing.chain import Credential
from hermes_agent.store.cooldowns import CoolDown
from hermes_agent.store.database import open_store
from tests.cli.shell import typed

KEYS = {"OPENAI_API_KEY": "sk-first-key-of-the-test", "OPENAI_API_KEY_2": "sk-second-key-of-the-test"}


def home(tmp_path: Path) -> Path:
    """A home with two keys, of which the second rests, like one model."""

    async def fill() -> None:
        store = await open_store(tmp_path / "hermes.db")
        second = Credential(name="OPENAI_API_KEY_2", key=KEYS["OPENAI_API_KEY_2"])
        await store.cool_downs.put(
            [
                CoolDown(
                    provider="openai",
                    credential=second.name,
                    model="",
                    mark=second.mark,
                    until=4e9,
                    reason="AuthRefused",
                ),
                CoolDown(provider="openai", credential="", model="gpt-5.2", mark="", until=4e9, reason="Overloaded"),
            ],
            0.0,
        )
        await store.close()

    asyncio.run(fill())
    (tmp_path / ".env").write_text("".join(f"{name}={key}\n" for name, key in KEYS.items()))
    (tmp_path / ".env").chmod(0o600)
    return tmp_path


def test_keys_are_shown_by_name_with_their_state(tmp_path: Path) -> None:
    said = typed(home(tmp_path), "model", "credentials")

    first, second, model = said.out.splitlines()[1:]
    assert first.split() == ["openai", "OPENAI_API_KEY", ".env", "0", "ready"]
    assert second.split()[1] == "OPENAI_API_KEY_2"
    assert second.endswith("s: AuthRefused")
    assert "for gpt-5.2: Overloaded" in model
    assert "key-of-the-test" not in said.out


def test_a_key_that_was_replaced_does_not_rest(tmp_path: Path) -> None:
    folder = home(tmp_path)
    (folder / ".env").write_text("OPENAI_API_KEY=a\nOPENAI_API_KEY_2=another-one\n")

    found = json.loads(typed(folder, "model", "credentials", "--vendor", "openai", "--json").out)

    assert [(one["credential"], one["reason"]) for one in found] == [
        ("OPENAI_API_KEY", ""),
        ("OPENAI_API_KEY_2", ""),
        ("", "Overloaded"),
    ]


def test_what_rests_can_be_woken(tmp_path: Path) -> None:
    folder = home(tmp_path)

    assert json.loads(typed(folder, "model", "credentials", "--reset", "--vendor", "anthropic", "--json").out) == {
        "woken": 0
    }
    assert typed(folder, "model", "credentials", "--reset").out == "2 of them can be used again.\n"
    assert typed(folder, "model", "credentials", "--reset").out == "Nothing was paused.\n"
    assert all(one["rests"] == 0 for one in json.loads(typed(folder, "model", "credentials", "--json").out))


def test_without_a_key_there_is_a_way_on(tmp_path: Path) -> None:
    assert "hermes setup" in typed(tmp_path, "model", "credentials").err
