"""The inbox: accepted once, in order, ended exactly once."""

from dataclasses import replace

import pytest

from hermes_agent.core.chat import TAKEN_BACK, Conversation, Inbound, Principal
from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending
from tests.databases import OpenAnother
from tests.store.made import QUEUE, QUEUES, add, answer, claimed, mail, session


async def test_mail_comes_back_as_it_was_sent(store: Store):
    sent = mail(1, "Ünï \0 \ud800 🎉")
    lease = await claimed(store)
    number = await store.inbox.accept(replace(sent, source_id="2"), "s1", QUEUE)

    waiting = await store.inbox.waiting(lease)

    assert waiting[1] == (number, replace(sent, source_id="2"))


async def test_a_row_that_cannot_be_read_is_named_and_hides_no_other(store: Store):
    lease = await claimed(store)
    number = await store.inbox.accept(mail(2), "s1", QUEUE)
    await store.write(lambda tx: tx.run("UPDATE inbox SET body = '{' WHERE source_id = '1'"))

    (row, damaged), *others = await store.inbox.waiting(lease)

    assert others == [(number, mail(2))]
    assert str(damaged).startswith(
        f"A message could not be read and was set aside (row {row} of the inbox, from test: "
    )
    assert await store.inbox.open(lease) == [(mail(2), False)]
    back = replace(mail("2:gone"), withdraws="2")
    assert await store.inbox.withdraw(back, QUEUE) == {"s1": replace(back, source_id="2:gone:s1")}
    assert await store.inbox.withdraw(replace(mail("1:gone"), withdraws="1"), QUEUE) == {}
    await store.write(lambda tx: store.inbox.drop(tx, lease, [row], 2.0, str(damaged)))
    found = await store.inbox.at(row)
    assert (found.state, found.reason) == ("refused", str(damaged))


async def test_the_same_message_is_accepted_once(store: Store, open_another: OpenAnother):
    await add(store, session())
    other = await open_another()

    assert await store.inbox.accept(mail(1), "s1", QUEUE) is not None
    assert await other.inbox.accept(mail(1), "s1", QUEUE) is None
    assert await store.inbox.accept(replace(mail(1), source="other"), "s1", QUEUE) is not None


async def test_mail_is_found_by_its_row(store: Store):
    await add(store, session())
    number = await store.inbox.accept(mail(1), "s1", QUEUE)

    found = await store.inbox.at(number)
    assert (found.id, found.session, found.state) == (number, "s1", "new")
    assert await store.inbox.at(number + 1) is None
    other = await store.inbox.accept(replace(mail(2), digest="d"), "s1", QUEUE)
    assert [await store.inbox.digest(row) for row in (number, other)] == ["", "d"]
    await store.write(lambda tx: tx.run("UPDATE inbox SET body = '{' WHERE id = $1", other))
    assert await store.inbox.digest(other) == ""


async def test_accepting_can_be_part_of_a_larger_commit(store: Store):
    async def change(tx):
        await store.sessions.create(tx, session())
        return await store.inbox.accept(mail(1), "s1", QUEUE, tx=tx)

    number = await store.write(change)

    lease = await store.lanes.claim(QUEUES)
    assert lease is not None
    assert lease.waiting == (number,)


async def test_an_accept_that_is_run_again_knows_its_own_row(store: Store):
    """What happens when the commit's acknowledgement was lost and nobody can tell whether it was made."""
    change = None

    async def keep(first):
        nonlocal change
        change = first
        return await store.write(first)

    store.inbox._engine = _Recording(store.engine, keep)
    number = await store.inbox.accept(mail(1), "s1", QUEUE)

    assert await store.write(change) == number
    lease = await store.lanes.claim(QUEUES)
    assert lease is not None
    assert lease.waiting == (number,)


class _Recording:
    """An engine that hands its changes to the test."""

    def __init__(self, engine, keep):
        self.dialect = engine.dialect
        self.read = engine.read
        self._keep = keep

    async def write(self, change, *, durable=True):
        return await self._keep(change)


async def test_taken_mail_waits_no_more_but_is_not_answered(store: Store):
    lease = await claimed(store)
    assert await store.write(lambda tx: store.inbox.take(tx, lease, lease.waiting)) == 1

    assert await store.inbox.waiting(lease) == []

    await store.lanes.release(lease)
    again = await store.lanes.claim(QUEUES)
    assert again is not None
    assert (again.waiting, again.taken) == ((), lease.waiting)


async def test_taking_twice_under_one_lease_is_the_same(store: Store):
    lease = await claimed(store)
    await store.write(lambda tx: store.inbox.take(tx, lease, lease.waiting))

    assert await store.write(lambda tx: store.inbox.take(tx, lease, lease.waiting)) == 1
    assert await store.write(lambda tx: store.inbox.take(tx, lease, ())) == 0


async def test_finish_gives_the_lane_back(store: Store):
    lease = await claimed(store)

    assert await answer(store, lease) is True

    assert await store.lanes.claim(QUEUES) is None
    with pytest.raises(LostLease):
        await store.write(lambda tx: store.inbox.take(tx, lease, (1,)))


async def test_finish_keeps_the_lane_where_more_mail_waits(store: Store):
    lease = await claimed(store)
    second = await store.inbox.accept(mail(2), "s1", QUEUE)

    assert await answer(store, lease) is False

    assert [number for number, _ in await store.inbox.waiting(lease)] == [second]
    assert await answer(store, lease, (second or 0,)) is True


async def test_finish_again_after_a_lost_answer_is_the_same(store: Store):
    lease = await claimed(store)
    await answer(store, lease)

    assert await answer(store, lease) is True


async def test_finish_again_while_more_waits_counts_once(store: Store):
    lease = await claimed(store)
    second = await store.inbox.accept(mail(2), "s1", QUEUE)
    await answer(store, lease)

    assert await answer(store, lease) is False
    assert await answer(store, lease, (second or 0,)) is True


async def test_who_lost_the_lane_ends_nothing(store: Store):
    lease = await claimed(store)
    await store.lanes.release(lease)

    with pytest.raises(LostLease):
        await answer(store, lease)
    with pytest.raises(LostLease):
        await answer(store, lease, ())

    found = await store.inbox.find("test", "1")
    assert found is not None
    assert found.state == "new"


@pytest.mark.parametrize("ending", list(Ending))
async def test_how_mail_ended_can_be_looked_up(store: Store, ending: Ending):
    lease = await claimed(store)
    await store.write(lambda tx: store.inbox.finish(tx, lease, lease.pending, ending, reason="because\0"))

    found = await store.inbox.find("test", "1")

    assert found is not None
    assert (found.session, found.state, found.reason) == ("s1", ending.value, "because\ufffd")
    assert await store.inbox.find("test", "2") is None


async def test_a_lane_without_mail_is_given_back_by_an_empty_finish(store: Store):
    await add(store, session())
    lease = await store.lanes.hold("s1", QUEUE)
    assert lease is not None

    assert await answer(store, lease, ()) is True


def taking_back(number: int | str = 1, by: str = "") -> Inbound:
    who = Principal(platform="cli", user=by)
    return replace(mail(f"{number}:deleted"), principal=who, parts=(), withdraws=str(number))


async def test_what_takes_a_message_back_is_mail_of_its_lane(store: Store):
    lease = await claimed(store)

    assert [*await store.inbox.withdraw(taking_back(), QUEUE)] == ["s1"]
    assert [*await store.inbox.withdraw(taking_back(), QUEUE)] == ["s1"]

    assert [each.source_id for _, each in await store.inbox.waiting(lease)] == ["1", "1:deleted:s1"]
    assert await store.lanes.stops() == [("s1", "1")]


async def test_what_was_taken_back_before_it_was_read_ends_by_itself(store: Store):
    lease = await claimed(store)
    await store.inbox.withdraw(taking_back(), QUEUE)
    ids = [row for row, _ in await store.inbox.waiting(lease)]

    await store.write(lambda tx: store.inbox.drop(tx, lease, ids, 5.0))
    assert await store.inbox.waiting(lease) == []
    found = await store.inbox.find("test", "1")
    assert (found.state, found.reason) == ("refused", TAKEN_BACK)
    assert await store.write(lambda tx: store.inbox.finish(tx, lease, [], Ending.REFUSED)) is True
    assert await store.inbox.withdraw(taking_back(), QUEUE) == {}
    assert await store.lanes.claim(QUEUES) is None


async def test_only_who_wrote_a_message_takes_it_back_but_where_others_may(store: Store):
    await add(store, session())
    await store.inbox.accept(mail(1), "s1", QUEUE)

    assert await store.inbox.withdraw(taking_back(by="bo"), QUEUE) == {}
    assert [*await store.inbox.withdraw(taking_back(by="bo"), QUEUE, moderated=True)] == ["s1"]
    await store.inbox.accept(mail(2), "s1", QUEUE)
    assert [*await store.inbox.withdraw(taking_back(2, by="ann"), QUEUE)] == ["s1"]


async def test_who_may_delete_in_one_chat_deletes_nothing_in_another(store: Store):
    await add(store, session())
    await store.inbox.accept(mail(1), "s1", QUEUE)
    elsewhere = Conversation(platform="cli", chat_kind="dm", chat="a room of theirs")

    taken = replace(taking_back(by="bo"), conversation=elsewhere)

    assert await store.inbox.withdraw(taken, QUEUE, moderated=True) == {}


async def test_a_message_that_was_taken_back_before_it_came_is_not_accepted(store: Store):
    await add(store, session())

    assert await store.inbox.withdraw(taking_back(), QUEUE) == {}
    assert await store.inbox.withdraw(taking_back(), QUEUE) == {}
    assert await store.inbox.accept(mail(1), "s1", QUEUE) is None
    found = await store.inbox.find("test", "1")
    assert (found.session, found.state, found.reason) == ("", "refused", TAKEN_BACK)


async def test_what_a_command_said_is_taken_back_with_it(store: Store):
    await add(store, session())
    await store.inbox.accept(mail("1:said"), "s1", QUEUE)

    assert [*await store.inbox.withdraw(taking_back(), QUEUE)] == ["s1"]


async def test_a_message_whose_new_text_is_mail_of_another_lane_is_taken_back_in_both(store: Store):
    lease = await claimed(store)
    await add(store, session("s2"))
    await store.inbox.accept(replace(mail("1:changed"), replaces="1"), "s2", QUEUE)

    assert [*await store.inbox.withdraw(taking_back(), QUEUE)] == ["s1", "s2"]

    await answer(store, lease, (*lease.waiting, lease.waiting[0] + 2))
    assert [*await store.inbox.withdraw(taking_back(), QUEUE)] == ["s2"]


async def test_a_new_text_of_a_message_that_was_never_told_is_taken_back(store: Store):
    await add(store, session())
    await store.inbox.accept(replace(mail("1:changed"), replaces="1"), "s1", QUEUE)

    assert await store.inbox.withdraw(taking_back(by="bo"), QUEUE) == {}
    assert [*await store.inbox.withdraw(taking_back(by="ann"), QUEUE)] == ["s1"]


async def test_the_open_mail_of_a_lane_says_what_was_taken(store: Store):
    lease = await claimed(store)
    await store.inbox.accept(mail(2), "s1", QUEUE)
    await store.write(lambda tx: store.inbox.take(tx, lease, lease.waiting))

    assert [(each.source_id, taken) for each, taken in await store.inbox.open(lease)] == [("1", True), ("2", False)]


async def test_a_message_that_comes_while_it_is_taken_back_is_found(store: Store):
    """The row was not there, and then it was: what PostgreSQL shows where two commits meet."""
    await add(store, session())
    await store.inbox.accept(mail(1), "s1", QUEUE)
    write, looked = store.inbox._engine.write, []

    async def blind(change, **more):
        class Tx:
            def __init__(self, tx):
                self._tx = tx

            def __getattr__(self, name):
                return getattr(self._tx, name)

            async def rows(self, sql, *params):
                if sql.startswith("SELECT id, lane, body") and not looked:
                    looked.append(sql)
                    return []
                return await self._tx.rows(sql, *params)

        return await write(lambda tx: change(Tx(tx)), **more)

    store.inbox._engine = _Recording(store.engine, lambda change: blind(change))
    assert [*await store.inbox.withdraw(taking_back(), QUEUE)] == ["s1"]


async def test_mail_that_a_run_has_in_hand_is_known_to_every_process(store: Store):
    lease = await claimed(store)
    assert not await store.inbox.under_way("s1")

    await store.write(lambda tx: store.inbox.take(tx, lease, lease.pending))
    assert await store.inbox.under_way("s1")

    await answer(store, lease)
    assert not await store.inbox.under_way("s1")
