"""What conversations brought since they were reviewed, on both databases."""

from hermes_agent.store.database import Store


async def test_counts_grow_until_they_are_reset(store: Store):
    assert await store.pace.counted("s1") == (0, 0)

    await store.write(lambda tx: store.pace.count(tx, "s1", 4, 1))
    assert await store.write(lambda tx: store.pace.count(tx, "s1", 3, 2)) == (7, 3)
    await store.write(lambda tx: store.pace.reset(tx, "s1", "skills"))
    assert await store.pace.counted("s1") == (0, 3)
    await store.write(lambda tx: store.pace.reset(tx, "s1", "memory"))

    assert await store.pace.counted("s1") == (0, 0)


async def test_empty_reviews_are_counted_by_person(store: Store):
    for principal, empty in (("ann", True), ("ann", True), ("bob", True), ("bob", False)):
        await store.write(lambda tx, p=principal, e=empty: store.pace.note(tx, p, "skills", empty=e))

    assert await store.read(lambda tx: store.pace.empty(tx, "ann")) == {"skills": 2}
    assert await store.read(lambda tx: store.pace.empty(tx, "bob")) == {"skills": 0}
