"""A process that keeps facts: `python facts_writer.py DATABASE NAME COUNT`; it prints each number that is done."""

import asyncio
import sys

from hermes_agent.memory.backends.holographic import made_of
from hermes_agent.store.database import open_store
from hermes_agent.store.facts.facts import Source
from hermes_agent.store.versions import Author


async def main(url: str, name: str, count: int) -> None:
    store = await open_store(url)
    for number in range(count):
        by = Source(author=Author.FOREGROUND, key=f"{name}-{number}")
        fact = await store.known_facts.add("hermes", made_of(f"{name} {number}"), by, 1.0)
        assert fact is not None
        await store.known_facts.judge("hermes", fact, 0.1, Source(author=Author.FOREGROUND), 2.0)
        print(fact, flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
