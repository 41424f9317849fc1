"""Sessions as rows: found by what a person types, listed, deleted without trace in the log."""

import pytest

from hermes_agent.core.errors import LostLease, UnknownSession
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother
from tests.store.made import QUEUE, QUEUES, add, append, claimed, intent, mail, session


async def test_a_session_is_kept_as_it_was_made(store: Store):
    record = await add(store, session("s1", title="Fix the build"))

    assert await store.sessions.get("s1") == record
    assert await store.sessions.get("s2") is None


async def test_an_id_that_exists_keeps_its_row(store: Store):
    first = await add(store, session("s1", title="first"))

    await add(store, session("s1", title="second"))

    assert await store.sessions.get("s1") == first


async def test_a_conversation_has_one_current_session(store: Store):
    await add(store, session("s1"))
    second = await add(store, session("s2"))
    await store.write(lambda tx: store.sessions.set_current(tx, "telegram:dm:1", "s1"))

    await store.write(lambda tx: store.sessions.set_current(tx, "telegram:dm:1", "s2"))

    assert await store.sessions.current("telegram:dm:1") == second
    assert await store.sessions.current("telegram:dm:2") is None


@pytest.mark.parametrize(
    ("conversation", "found"),
    [
        ("matrix:dm:7", True),
        ("matrix:dm:7::ann", True),
        ("matrix:dm:7:5", True),
        ("matrix:dm:7#work", True),
        ("matrix:dm:77", False),
        ("matrix:group:7", False),
    ],
)
async def test_a_place_has_the_sessions_of_all_conversations_in_it(store: Store, conversation: str, *, found: bool):
    await add(store, session("s1"))
    await store.write(lambda tx: store.sessions.set_current(tx, conversation, "s1"))

    assert await store.sessions.spoken_in("matrix:dm:7") is found

    await store.sessions.delete("s1")
    assert not await store.sessions.spoken_in("matrix:dm:7")


async def test_the_list_goes_from_the_last_used_on_in_pages(store: Store):
    for number in range(5):
        await add(store, session(f"s{number}", updated=float(number // 2)))

    first = await store.sessions.list(limit=2)
    second = await store.sessions.list(limit=2, before=first[-1])
    third = await store.sessions.list(limit=2, before=second[-1])

    assert [record.id for record in (*first, *second, *third)] == ["s4", "s3", "s2", "s1", "s0"]


async def test_a_list_of_one_principal_shows_nobody_elses(store: Store):
    await add(store, session("s1", principal="cli:ann"))
    await add(store, session("s2", principal="cli:bob"))

    assert [record.id for record in await store.sessions.list("cli:bob")] == ["s2"]


@pytest.mark.parametrize("name", ["20260101_101010_abcdef", "20260101_1", "fix the BUILD", "Fix"])
async def test_a_session_is_found_by_id_title_or_their_beginning(store: Store, name: str):
    await add(store, session("20260101_101010_abcdef", title="Fix the build"))
    await add(store, session("20260202_101010_abcdef", title="Write a poem"))

    assert (await store.sessions.find(name)).id == "20260101_101010_abcdef"


async def test_of_two_sessions_with_one_title_the_later_is_found(store: Store):
    await add(store, session("s1", title="Poem", updated=1.0))
    await add(store, session("s2", title="Poem", updated=2.0))

    assert (await store.sessions.find("poem")).id == "s2"


async def test_a_beginning_that_several_share_names_them(store: Store):
    await add(store, session("2026_a", title="One"))
    await add(store, session("2026_b"))

    with pytest.raises(UnknownSession, match=r'2026_a \("One"\)'):
        await store.sessions.find("2026")


async def test_an_unknown_name_gets_the_nearest(store: Store):
    await add(store, session("s1", title="Fix the build"))

    with pytest.raises(UnknownSession, match="Fix the build"):
        await store.sessions.find("fix teh build")


@pytest.mark.parametrize("name", ["", "zzzzzz", "%", "_"])
async def test_a_name_like_no_other_says_where_to_look(store: Store, name: str):
    await add(store, session("s1", title="Fix the build"))

    with pytest.raises(UnknownSession, match="hermes sessions list"):
        await store.sessions.find(name)


async def test_nobody_finds_another_ones_session(store: Store):
    await add(store, session("s1", principal="cli:ann", title="Secret"))

    for name in ("s1", "Secret", "Sec"):
        with pytest.raises(UnknownSession) as refused:
            await store.sessions.find(name, "cli:bob")
        assert '("Secret")' not in str(refused.value)


async def test_rename_prefix_and_model_change_the_row(open_another: OpenAnother):
    clock = FakeClock(now=50.0)
    store = await open_another(clock=clock)
    await add(store, session("s1"))

    await store.sessions.rename("s1", "New\0 title")
    await store.write(lambda tx: store.sessions.set_prefix(tx, "s1", "abc"))
    await store.sessions.set_model("s1", "demo/x")

    record = await store.sessions.get("s1")
    assert isinstance(record, Session)
    assert (record.title, record.prefix, record.model, record.updated) == ("New\ufffd title", "abc", "demo/x", 50.0)


async def test_a_session_is_used_with_each_message(open_another: OpenAnother):
    clock = FakeClock(now=50.0)
    store = await open_another(clock=clock)
    await add(store, session("old"))
    await add(store, session("new", updated=20.0))

    await store.inbox.accept(mail(1), "old", QUEUE)
    await store.inbox.accept(mail(2), "new", QUEUE, at=10.0)

    listed = await store.sessions.list("cli:ann")
    assert [(each.id, each.updated) for each in listed] == [("old", 50.0), ("new", 20.0)]


async def test_renaming_nothing_is_an_unknown_session(store: Store):
    with pytest.raises(UnknownSession):
        await store.sessions.rename("nobody", "x")


async def test_a_deleted_session_leaves_no_log_effect_or_mail(store: Store):
    lease = await claimed(store)
    await append(store, lease, 1, 2)
    await store.write(lambda tx: store.effects.intend(tx, lease, intent()))
    await store.write(lambda tx: store.sessions.set_current(tx, "cli:dm", "s1"))

    assert await store.sessions.delete("s1") is True

    assert await store.sessions.get("s1") is None
    assert await store.sessions.current("cli:dm") is None
    assert await store.history.entries("s1") == []
    assert await store.effects.open("s1") == []
    assert await store.lanes.claim(QUEUES) is None


async def test_who_works_on_a_deleted_session_has_lost_it(store: Store):
    lease = await claimed(store)
    await store.sessions.delete("s1")

    with pytest.raises(LostLease):
        await append(store, lease, 1)


async def test_mail_of_a_deleted_session_is_refused_and_still_counts_once(store: Store):
    await claimed(store)

    await store.sessions.delete("s1")

    found = await store.inbox.find("test", "1")
    assert found is not None
    assert (found.state, found.reason) == ("refused", "The session was deleted.")
    assert await store.inbox.accept(mail(1), "s1", QUEUE) is None


async def test_deleting_twice_is_once(store: Store):
    await add(store, session("s1"))
    await store.sessions.delete("s1")

    assert await store.sessions.delete("s1") is False


async def test_prune_takes_what_is_old_and_has_no_mail(store: Store):
    await add(store, session("old", updated=1.0))
    await add(store, session("mine", updated=1.0, principal="cli:bob"))
    await add(store, session("new", updated=100.0))
    await add(store, session("busy"))
    await store.inbox.accept(mail(1), "busy", QUEUE, at=1.0)

    pruned = await store.sessions.prune(50.0, "cli:ann")

    assert pruned == ("old",)
    assert [record.id for record in await store.sessions.list()] == ["new", "mine", "busy"]


async def test_the_busy_ones_are_those_with_mail_that_has_no_answer(store: Store):
    await add(store, session("idle"))
    await claimed(store, "mine")
    await add(store, session("theirs", principal="cli:bob", updated=9.0))
    await store.inbox.accept(mail(2), "theirs", QUEUE)

    assert [record.id for record in await store.sessions.list(busy=True)] == ["theirs", "mine"]
    assert [record.id for record in await store.sessions.list("cli:ann", busy=True)] == ["mine"]


async def test_stats_count_what_is_kept(store: Store):
    lease = await claimed(store)
    await append(store, lease, 1, 2, 3)
    await add(store, session("s2"))
    await store.sessions.delete("s2")

    stats = await store.sessions.stats()

    assert (stats.sessions, stats.entries, dict(stats.surfaces)) == (1, 3, {"cli": 1})
    assert stats.bytes > 10_000


async def test_of_two_who_begin_a_conversation_at_once_one_is_first(store: Store):
    await add(store, session("s1"))
    await add(store, session("s2"))

    assert await store.write(lambda tx: store.sessions.set_current(tx, "telegram:dm:1", "s1", only=True))
    assert not await store.write(lambda tx: store.sessions.set_current(tx, "telegram:dm:1", "s2", only=True))

    current = await store.sessions.current("telegram:dm:1")
    assert current is not None
    assert current.id == "s1"


async def test_a_deleted_session_stands_in_nobodys_way(store: Store):
    await add(store, session("s1"))
    await add(store, session("s2"))
    await store.sessions.delete("s1")
    await store.write(lambda tx: store.sessions.set_current(tx, "telegram:dm:1", "s1"))  # Somebody went on with it.

    assert await store.write(lambda tx: store.sessions.set_current(tx, "telegram:dm:1", "s2", only=True))
