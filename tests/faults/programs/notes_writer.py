"""A process that writes notes: `python notes_writer.py HOME NAME COUNT`; it prints each entry that is done."""

import asyncio
import sys
from pathlib import Path

from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.host.paths import Home
from hermes_agent.memory.entries import Operation
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.settings import MemorySettings, Person, Target
from hermes_agent.store.database import open_store
from hermes_agent.store.versions import Author, By

OWNER = Person(key="cli:ann", owner=True)
ROOMY = MemorySettings(memory_char_limit=100_000)


async def main(home: Path, name: str, count: int) -> None:
    store = await open_store(home / "hermes.db")
    notes = Notes(
        home=Home(root=home, base=home).ensure(), store=store, clock=SystemClock(), ids=RandomIds(), settings=ROOMY
    )
    for number in range(count):
        entry = f"{name} {number}"
        by = By(author=Author.FOREGROUND, principal="cli:ann", key=f"{name}-{number}")
        await notes.change(OWNER, Target.MEMORY, [Operation(action="add", content=entry)], by)
        print(entry, flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
