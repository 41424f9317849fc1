"""Facts by their words, on both databases."""

from asyncio import get_running_loop, run_coroutine_threadsafe
from pathlib import Path

import pytest

from hermes_agent.core.errors import DatabaseDamaged
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.facts.facts import NewFact, Source
from hermes_agent.store.facts.finding import IN_FORCE, FactFinding, search_words
from hermes_agent.store.transaction import Change, Dialect, Row, Transaction
from hermes_agent.store.versions import Author
from tests.store.facts.refusing import Refusing

AGENT = Source(author=Author.FOREGROUND)


async def add(store: Store, text: str, space: str = "ann") -> int:
    number = await store.known_facts.add(
        space, NewFact(text=text, names=(), vector=text.encode("utf-8"), trust=0.5), AGENT, 1.0
    )
    assert number is not None
    return number


async def found(store: Store, question: str, space: str = "ann") -> set[int]:
    asked = await store.fact_finding.ask(space, search_words(question))
    return set().union(*asked.holding.values())


async def test_words_are_found_by_their_stems_in_their_space_while_they_are_in_force(store: Store):
    deploys = await add(store, "Deploys go through staging.")
    await add(store, "Deploying is bob's.", "bob")
    gone = await add(store, "The last deployment failed.")
    await store.known_facts.retract("ann", gone, AGENT, 2.0)

    asked = await store.fact_finding.ask("ann", search_words("How do we deploy?"))

    assert asked.holding == {("deploi",): frozenset({deploys})}
    assert [(each.id, each.trust, each.checked) for each in asked.standing] == [(deploys, 0.5, 1.0)]


async def test_two_characters_of_a_script_without_spaces_are_found(store: Store):
    tokyo = await add(store, "会議は東京であります。")
    await add(store, "京都に行く。東に。")

    assert await found(store, "東京") == {tokyo}


@pytest.mark.parametrize(
    "question", ["", "?!\"'*", "the of and", "\0\ud83d", '"unclosed', "a:b OR NEAR(", "x" * 10_000]
)
async def test_no_question_is_a_failure(store: Store, question: str):
    await add(store, "Tea is at four.")

    assert await found(store, question) == set()


class Late:
    """An `Engine` in whose queries a fact comes after the first question."""

    dialect = Dialect.SQLITE

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, query: Change[object], *, brief: bool = False) -> object:
        async def late(tx: Transaction) -> object:
            rows = tx.rows
            answers = iter((await rows(IN_FORCE, "ann"), None))
            adding = run_coroutine_threadsafe(add(self._store, "Tea is at four."), loop)
            adding.result()

            class Seen:
                dialect = tx.dialect

                async def rows(self, sql: str, *params: object) -> list[Row]:
                    return next(answers) or await rows(sql, *params)

            return await query(Seen())

        loop = get_running_loop()
        return await self._store.read(late)


async def test_a_fact_that_comes_while_one_asks_is_found_the_next_time(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db")
    await add(store, "Tea is green.")

    asked = await FactFinding(Late(store)).ask("ann", search_words("tea"))

    assert frozenset().union(*asked.holding.values()) == {each.id for each in asked.standing}
    assert len(asked.standing) == 1
    await store.close()


async def test_what_facts_say_is_read_by_their_numbers_many_at_once_of_their_space_alone(store: Store):
    own, other = await add(store, "Own."), await add(store, "Other.", "bob")

    kept = await store.fact_finding.kept("ann", [*range(2_000, 3_200), own, other])

    assert [(each.id, each.text, each.vector) for each in kept] == [(own, "Own.", b"Own.")]


async def test_a_damaged_index_of_words_is_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    store = await open_store(tmp_path / "hermes.db")
    tea = await add(store, "Tea is at four.")
    await store.write(lambda tx: tx.run("UPDATE known_fact_words_data SET block = $1 WHERE id > 10", b"garbage"))

    assert await found(store, "tea") == {tea}
    assert "made again" in caplog.text

    await store.close()


async def test_a_server_that_says_that_it_is_damaged_is_believed():
    with pytest.raises(DatabaseDamaged):
        await FactFinding(Refusing()).ask("ann", ())
