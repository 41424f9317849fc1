"""Ids that are phone numbers or addresses never stand in what it has hidden; the same id is always the same."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from hermes_agent.app.chats.pseudonyms import KNOWN, Pseudonyms
from hermes_agent.store.database import open_store
from hermes_agent.store.pairing import Facts


def test_an_id_is_hidden_wherever_it_stands_alone_or_in_a_key():
    pseudonyms = Pseudonyms()
    pseudonyms.know("+4915112345678", "ann@example.org", "@ann:example.org", "9")

    text = "Slot sms:dm:+4915112345678 of <ann@example.org>, (@ann:example.org): to=+4915112345678. 9 left"
    hidden = pseudonyms.hide(text)

    assert "4915112345678" not in hidden
    assert "ann" not in hidden
    assert hidden.count(pseudonyms.of("+4915112345678")) == 2
    assert hidden.endswith("9 left")


@pytest.mark.parametrize("identity", ["ann@example.org", "@ann:example.org", "-1001234567", "U0ANN12"])
@pytest.mark.parametrize(
    "form",
    ["{}", "{}:", "_{}_", "mailto:{}?x", "{}.txt", "a/{}/b", "for:{}.", "{upper}", "to={escaped}", "%3C{escaped}%3E"],
)
def test_an_id_is_hidden_however_it_is_written(identity: str, form: str):
    pseudonyms = Pseudonyms()
    pseudonyms.know(identity)

    said = form.format(identity, upper=identity.upper(), escaped=quote(identity, safe=""))

    alias = pseudonyms.of(identity)
    assert pseudonyms.hide(said) == form.format(alias, upper=alias, escaped=alias)


def test_what_is_no_id_stays():
    pseudonyms = Pseudonyms()
    assert pseudonyms.hide("Call +4915112345678") == "Call +4915112345678"
    pseudonyms.know("+4915112345678")
    assert pseudonyms.hide("Call +49151123456789") == "Call +49151123456789"
    pseudonyms.know("ann@example.org", "----")
    assert (
        pseudonyms.hide("joann@example.org ann@example.orgs ---- ann") == "joann@example.org ann@example.orgs ---- ann"
    )


def test_the_oldest_are_forgotten_past_the_limit():
    pseudonyms = Pseudonyms()
    pseudonyms.know(*(f"id-{number}" for number in range(KNOWN + 1)))

    assert pseudonyms.hide("id-0") == "id-0"
    assert pseudonyms.hide("id-1") != "id-1"


def test_what_is_kept_is_never_forgotten_and_what_is_forgotten_leaves_nothing():
    pseudonyms = Pseudonyms()
    pseudonyms.keep("ann@example.org")
    pseudonyms.know(
        *(f"{number}@example.org" for number in range(KNOWN)), *(f"b{number}@x.org" for number in range(KNOWN))
    )

    assert pseudonyms.hide("ann@example.org") == pseudonyms.of("ann@example.org")
    assert len(pseudonyms._by_core) == KNOWN + 1
    assert len(pseudonyms._begun) <= 3 * (KNOWN + 1)


@pytest.mark.parametrize("form", ["<a@{:05}.co> ", "a.", "a%40{}%2E", "a@b.{} a@b."])
def test_however_many_ids_a_text_names_its_length_alone_counts(form: str):
    """Ten times the text takes about ten times as long; it was the square. No text takes seconds."""

    def seconds(count: int) -> float:
        pseudonyms, names = Pseudonyms(), [form.format(number) for number in range(count)]
        pseudonyms.know(
            *(f"a@{number:05}.co" for number in range(count)), *(f"a@b.{number}" for number in range(count))
        )
        pseudonyms.know(".".join("a" * 16), ".".join("a" * 15))
        text, taken = "".join(names), list[float]()
        for _ in range(3):
            began = time.process_time()
            pseudonyms.hide(text)
            taken.append(time.process_time() - began)
        return min(taken)

    assert seconds(10_000) < 40 * max(seconds(1000), 0.003)


async def test_all_processes_of_a_database_hash_alike_and_nobody_else_does(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db")
    first, second, stranger = Pseudonyms(), Pseudonyms(), Pseudonyms()
    await first.load_salt(store.facts)
    await second.load_salt(store.facts)
    await store.close()

    assert first.of("+49") == second.of("+49") != stranger.of("+49")


class Slow:
    """Facts of a process that is held up between its look and its change."""

    def __init__(self, facts: Facts, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self.of = facts.of
        self._facts = facts
        self._meanwhile = meanwhile

    async def set(self, *given: str, **more: bool) -> None:
        await self._meanwhile()
        await self._facts.set(*given, **more)


async def test_two_processes_that_begin_at_once_hash_alike(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db")
    first, second = Pseudonyms(), Pseudonyms()

    await first.load_salt(Slow(store.facts, lambda: second.load_salt(store.facts)))

    assert first.of("+4915112345678") == second.of("+4915112345678")
    await store.close()
