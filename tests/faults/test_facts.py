"""Processes keep facts at once and are killed while they do: no fact without its ledger, none lost that was told of."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hermes_agent.store.database import open_store
from hermes_agent.store.facts.finding import search_words

WRITER = Path(__file__).parent / "programs" / "facts_writer.py"
ROOT = Path(__file__).parents[2]
KILLS = 3


async def writer(url: str, name: str, count: int) -> asyncio.subprocess.Process:
    environment = {"PATH": os.defpath, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    return await asyncio.create_subprocess_exec(
        sys.executable, str(WRITER), url, name, str(count), env=environment, stdout=asyncio.subprocess.PIPE
    )


async def checked(url: str) -> set[int]:
    """The facts there are; the ledger leads to the trust of each, and each is found by its words."""
    store = await open_store(url)
    try:
        facts = {fact.id: fact for fact in await store.known_facts.in_force(limit=10_000)}
        reached: dict[int, float | None] = {}
        for change in reversed(await store.known_facts.log(limit=100_000)):
            assert reached.get(change.fact) == change.before
            reached[change.fact] = change.after
        assert reached == {number: fact.trust for number, fact in facts.items()}
        for fact in facts.values():
            name, number = search_words(fact.text)
            holding = (await store.fact_finding.ask("hermes", (name, number))).holding
            assert fact.id in holding[name] & holding[number]
    finally:
        await store.close()
    return set(facts)


@pytest.mark.timeout(120)
async def test_two_processes_at_once_and_kills_in_the_middle_lose_nothing(database_url: str):
    done: set[int] = set()
    await (await open_store(database_url)).close()
    for kill in range(KILLS):
        both = [await writer(database_url, f"{name}{kill}", 1_000) for name in ("ann", "bob")]
        for each in both:
            assert each.stdout is not None
            done |= {int(await each.stdout.readline()) for _ in range(2 + kill)}
        for each in both:
            each.kill()
            rest, _ = await each.communicate()
            done |= {int(line) for line in rest.splitlines()}

    facts = await checked(database_url)

    assert done <= facts
    # Of each killed process at most one fact was not told of.
    assert len(facts - done) <= 2 * KILLS
