"""A process that tests kill: says numbered things in a session of a database until it dies.

`python log_writer.py PATH SESSION FIRST LAST [end]`: prints a line when all is committed, and then waits to be killed;
with `end` it closes the database. The session `look` says nothing, and searches.
"""

import asyncio
import sys

from hermes_agent.core.events import Entry, MessageTaken
from hermes_agent.core.messages import said
from hermes_agent.store.database import open_store
from hermes_agent.store.search import EVERYBODY
from tests.store.made import claimed

WORDS = 40
"""So that a hundred entries are many pages."""


async def main(path: str, name: str, first: int, last: int, end: bool) -> None:
    store = await open_store(path)
    if name == "look":
        await store.search.search("says", EVERYBODY)
        first, name = last + 1, ""
    lease = await claimed(store, name, name) if name else None
    for number in range(first, last + 1):
        unique = f"{name}{'first' if number == first else 'more'} n{number}"
        text = f"{unique} " + " ".join(f"w{number}x{word}" for word in range(WORDS))
        entry = Entry(number=number, run="r", at=1.0, event=MessageTaken(message=said(text)))
        await store.write(lambda tx, entry=entry: store.history.append(tx, lease, [entry]))
    if not end:
        print("written", flush=True)
        await asyncio.Event().wait()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), "end" in sys.argv[5:]))
