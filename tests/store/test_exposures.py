"""What a session was offered and read, one row each, which go with it."""

from hermes_agent.store.database import Store
from tests.store.made import add, session

ROWS = "SELECT session, principal, at, eligible, read FROM episode JOIN exposure USING (session)"


async def draw(store: Store, *eligible: str) -> None:
    await store.write(lambda tx: store.exposures.draw(tx, "s1", eligible))


async def rows(store: Store) -> list[tuple[object, ...]]:
    return await store.read(lambda tx: tx.rows(ROWS))


async def test_what_was_offered_first_stays_and_what_is_read_is_noted_once(store: Store):
    await add(store, session(updated=7.0))

    await draw(store, "deploy", "brew-tea")
    await draw(store, "another")
    for name in ("deploy", "deploy", "never-offered"):
        await store.exposures.note_read("s1", name)
    await store.exposures.note_read("s2", "deploy")

    assert await rows(store) == [("s1", "cli:ann", 7.0, '["brew-tea","deploy"]', '["deploy"]')]


async def test_it_goes_with_the_session(store: Store):
    await add(store, session())
    await draw(store)

    await store.sessions.delete("s1")

    assert await rows(store) == []
