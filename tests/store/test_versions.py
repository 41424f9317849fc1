"""The ledger of what is learned."""

from dataclasses import replace

from hermes_agent.store.database import Store
from hermes_agent.store.versions import Author, Change, Kind, VersionState

CHANGE = Change(
    kind=Kind.MEMORY,
    item="MEMORY.md",
    at=5.0,
    author=Author.FOREGROUND,
    action="add",
    before=None,
    after=b"one\xff\0\n",
    change="c1",
    principal="cli:ann",
    session="s1",
    first=3,
    last=9,
    key="s1-call_1",
)


async def kept(store: Store, change: Change, state: VersionState = VersionState.DONE) -> int:
    return await store.write(lambda tx: store.versions.record(tx, change, state))


async def test_a_version_comes_back_byte_for_byte(store: Store):
    full = replace(CHANGE, undoes=1, evidence="[1]", taint="web", cost=0.5, note="why")

    number = await kept(store, full)
    found = await store.versions.get(number)

    assert found is not None
    assert found.change == full
    assert found.state is VersionState.DONE


async def test_an_intended_change_is_settled_once(store: Store):
    number = await kept(store, CHANGE, VersionState.INTENDED)

    await store.write(lambda tx: store.versions.complete(tx, number, VersionState.DONE))
    await store.write(lambda tx: store.versions.complete(tx, number, VersionState.DROPPED))

    found = await store.versions.get(number)
    assert found is not None
    assert found.state is VersionState.DONE


async def test_the_latest_is_of_its_item_and_was_not_dropped(store: Store):
    await kept(store, CHANGE)
    wanted = await kept(store, replace(CHANGE, after=b"two"))
    await kept(store, replace(CHANGE, item="USER.md"))
    await kept(store, replace(CHANGE, kind=Kind.SKILL))
    await kept(store, CHANGE, VersionState.DROPPED)

    found = await store.versions.latest(Kind.MEMORY, "MEMORY.md")

    assert found is not None
    assert found.id == wanted
    assert await store.versions.latest(Kind.MEMORY, "none") is None


async def test_a_list_is_newest_first_in_pages(store: Store):
    numbers = [await kept(store, replace(CHANGE, after=str(each).encode())) for each in range(5)]
    await kept(store, replace(CHANGE, kind=Kind.SKILL))

    first = await store.versions.list(Kind.MEMORY, limit=2)
    rest = await store.versions.list(Kind.MEMORY, "MEMORY.md", before=first[-1].id)

    assert [each.id for each in (*first, *rest)] == numbers[::-1]
    assert len(await store.versions.list()) == 6


async def test_a_call_is_known_again_once_it_is_done(store: Store):
    number = await kept(store, CHANGE, VersionState.INTENDED)
    assert await store.versions.by_key(CHANGE.key) is None

    await store.write(lambda tx: store.versions.complete(tx, number, VersionState.DONE))

    found = await store.versions.by_key(CHANGE.key)
    assert found is not None
    assert found.id == number


async def test_what_was_taken_back_is_known(store: Store):
    number = await kept(store, CHANGE)
    assert not await store.versions.undone(number)

    await kept(store, replace(CHANGE, undoes=number))

    assert await store.versions.undone(number)


async def test_what_an_author_changed_because_of_a_conversation_is_found(store: Store):
    first = await kept(store, replace(CHANGE, author=Author.BACKGROUND))
    second = await kept(store, replace(CHANGE, author=Author.BACKGROUND, item="USER.md"))
    await kept(store, CHANGE)
    await kept(store, replace(CHANGE, author=Author.BACKGROUND, session="s2"))
    await kept(store, replace(CHANGE, author=Author.BACKGROUND), VersionState.INTENDED)

    found = await store.versions.of_session("s1", Author.BACKGROUND)

    assert [each.id for each in found] == [second, first]


async def test_what_nobody_known_wrote_is_vouched_for_by_nobody(store: Store):
    await kept(store, CHANGE)
    assert await store.versions.vouches(CHANGE.kind, CHANGE.item, CHANGE.after)
    assert not await store.versions.vouches(CHANGE.kind, CHANGE.item, b"other")
    assert not await store.versions.vouches(CHANGE.kind, "nothing", CHANGE.after)

    await kept(store, replace(CHANGE, author=Author.FOUND))

    assert await store.versions.is_found(CHANGE.kind, CHANGE.item)
    assert not await store.versions.vouches(CHANGE.kind, CHANGE.item, CHANGE.after)


async def test_an_intended_change_is_dropped_unless_another_home_built_on_it(store: Store):
    number = await kept(store, CHANGE, VersionState.INTENDED)
    version = await store.versions.get(number)

    assert await store.write(lambda tx: store.versions.drop(tx, version))

    dropped = await store.versions.get(number)
    assert dropped is not None
    assert dropped.state is VersionState.DROPPED
    assert await store.write(lambda tx: store.versions.drop(tx, dropped))
