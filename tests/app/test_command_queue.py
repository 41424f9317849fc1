"""Commands of chats are durable, done in their order and once, and a defect in one is told."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.command_queue import COMMANDS, CommandQueue, is_command, parse_command
from hermes_agent.core.chat import TAKEN_BACK, Conversation, Inbound
from hermes_agent.core.errors import DiskFull
from hermes_agent.core.messages import Text
from hermes_agent.runs.one_run import APOLOGY
from hermes_agent.store.leases import Lease
from tests.app.place import Place, place

CHAT = Conversation(platform="telegram", chat="1")


def line(here: Place, text: str, source_id: str = "1") -> Inbound:
    return Inbound(
        source="telegram",
        source_id=source_id,
        principal=here.runtime.owner,
        conversation=CHAT,
        parts=(Text(text=text),),
        received=1.0,
    )


def made(here: Place) -> CommandQueue:
    return CommandQueue(here.runtime, str(here.runtime.home.root), lambda: None)


async def answers(here: Place) -> list[str]:
    return [slot.content.text for slot in await here.runtime.store.outbox.claim(("telegram",))]


@pytest.mark.parametrize(
    ("text", "order"), [("/new", True), ("/no-such", True), ("/etc/hosts", False), ("hello /new", False)]
)
def test_a_line_is_an_order_where_it_begins_like_one(text: str, order: bool):
    assert is_command(text) is order


def test_what_an_order_is_called():
    assert parse_command("/new title") == ("new", True)
    assert parse_command("/my-skill words") == ("my-skill", False)


async def test_an_order_that_a_crash_left_is_done(tmp_path: Path):
    async with place(tmp_path, []) as here:
        await here.runtime.store.inbox.accept(line(here, "/title Mine"), f"command {CHAT.key}", COMMANDS)

        command_queue = made(here)
        command_queue.resume()
        await command_queue.drain()

        assert await answers(here) == ["Titled “Mine”."]
        mail = await here.runtime.store.inbox.find("telegram", "1")
        assert mail is not None
        assert mail.state == "answered"


async def test_an_order_that_cannot_be_read_is_told_once_and_the_others_are_done(tmp_path: Path):
    async with place(tmp_path, []) as here:
        store = here.runtime.store
        for number, text in enumerate(("/title One", "/title Two")):
            await store.inbox.accept(line(here, text, str(number)), f"command {CHAT.key}", COMMANDS)
        await store.write(lambda tx: tx.run("UPDATE inbox SET body = '{' WHERE source_id = '0'"))

        command_queue = made(here)
        command_queue.resume()
        await command_queue.drain()

        slots = [await store.outbox.find(f"answer:telegram:{number}") for number in (0, 1)]
        told, done = [slot.content.text for slot in slots if slot]
        assert told.startswith("A message could not be read and was set aside (row 1 of the inbox, from telegram: ")
        assert done == "Titled “Two”."
        mail = await store.inbox.find("telegram", "0")
        assert mail is not None
        assert (mail.state, mail.reason) == ("refused", told)


async def test_what_is_said_while_orders_of_an_earlier_process_are_done_comes_after_them(tmp_path: Path):
    async with place(tmp_path, []) as here:
        await here.runtime.store.inbox.accept(line(here, "/title Mine"), f"command {CHAT.key}", COMMANDS)
        command_queue = made(here)
        assert not command_queue.wait(CHAT)

        command_queue.resume()
        assert command_queue.wait(CHAT)

        await command_queue.drain()
        assert not command_queue.wait(CHAT)


async def test_orders_of_one_chat_are_done_in_their_order(tmp_path: Path):
    async with place(tmp_path, []) as here:
        command_queue = made(here)
        for number in range(4):
            await command_queue.enqueue(line(here, f"/title Number {number}", str(number)))
        await command_queue.drain()

        record = await here.runtime.store.sessions.current(CHAT.key)
        assert record is not None
        assert record.title == "Number 3"


async def test_a_defect_in_a_command_is_told_with_an_apology(tmp_path: Path):
    async with place(tmp_path, []) as here:
        command_queue = made(here)

        async def broken(_: Inbound) -> str:
            raise ZeroDivisionError

        command_queue._performed = broken
        await command_queue.enqueue(line(here, "/new"))
        await command_queue.drain()

        assert await answers(here) == [APOLOGY]


async def test_a_failure_is_told_in_its_words(tmp_path: Path):
    async with place(tmp_path, []) as here:
        command_queue = made(here)
        await command_queue.enqueue(line(here, "/approve"))
        await command_queue.drain()

        assert await answers(here) == ["No approval is open here. `/approvals` lists those of your other sessions."]


async def test_what_says_nothing_is_answered_with_nothing(tmp_path: Path):
    async with place(tmp_path, []) as here:
        command_queue = made(here)
        await command_queue.enqueue(line(here, "/etc/hosts"))
        await command_queue.drain()

        assert await answers(here) == []


async def test_a_session_that_there_is_not_is_told_and_the_next_order_is_done(tmp_path: Path):
    async with place(tmp_path, []) as here:
        command_queue = made(here)
        await command_queue.enqueue(line(here, "/resume nowhere", "1"))
        await command_queue.enqueue(line(here, "/title Mine", "2"))
        await command_queue.drain()

        slots = [await here.runtime.store.outbox.find(f"answer:telegram:{number}") for number in (1, 2)]
        missing, titled = [slot.content.text for slot in slots if slot]
        assert "nowhere" in missing
        assert titled == "Titled “Mine”."


async def test_an_order_waits_for_a_store_that_fails_and_is_done_then(tmp_path: Path):
    async with place(tmp_path, []) as here:
        command_queue, tries = made(here), iter([DiskFull("No room left on the disk.")])
        perform = command_queue._performed

        async def failing(inbound: Inbound) -> str:
            if (error := next(tries, None)) is not None:
                raise error
            return await perform(inbound)

        command_queue._performed = failing
        await command_queue.enqueue(line(here, "/title Mine"))
        await command_queue.drain()

        assert await answers(here) == ["Titled “Mine”."]


async def test_an_order_that_was_deleted_before_it_was_done_is_not_done(tmp_path: Path):
    async with place(tmp_path, []) as here:
        store, lane = here.runtime.store, f"command {CHAT.key}"
        await store.inbox.accept(line(here, "/title Mine"), lane, COMMANDS)
        back = replace(line(here, "", "1:deleted"), parts=(), withdraws="1")
        assert await here.runtime.hermes.withdraw(back) == [lane]

        command_queue = made(here)
        command_queue.on_withdrawn("a session")
        command_queue.on_withdrawn(lane)
        await command_queue.drain()

        assert await answers(here) == []
        assert await store.lanes.next_ready((COMMANDS,)) is None


async def test_what_was_deleted_while_it_became_mail_of_the_session_is_not_answered(tmp_path: Path):
    began, gate = asyncio.Event(), asyncio.Event()

    async def slow(inbound: Inbound, **_: str) -> Inbound:
        began.set()
        await gate.wait()
        return inbound

    async with place(tmp_path, []) as here:
        hermes, store = here.runtime.hermes, here.runtime.store
        hermes.receive = slow
        command_queue = made(here)
        await command_queue.enqueue(line(here, "Delete everything"))
        await began.wait()
        back = replace(line(here, "", "1:deleted"), parts=(), withdraws="1")
        for lane in await hermes.withdraw(back):
            command_queue.on_withdrawn(lane)
        gate.set()
        await command_queue.drain()

        said = await store.inbox.find("telegram", "1:said")
        assert said is not None
        while await store.sessions.list(busy=True):
            await asyncio.sleep(0.01)
        ended = await store.inbox.find("telegram", "1:said")
        assert ended is not None
        assert (ended.state, ended.reason) == ("refused", TAKEN_BACK)
        assert await answers(here) == []


async def test_an_order_that_comes_just_after_the_last_look_is_done(tmp_path: Path):
    async with place(tmp_path, []) as here:
        command_queue = made(here)
        take, late = command_queue._locks.claim, [line(here, "/title Second", "2")]

        async def look(queue: str, lane: str | None = None) -> Lease | None:
            lease = await take(queue, lane)
            if lease is None and late:
                await command_queue.enqueue(late.pop())
            return lease

        command_queue._locks.claim = look
        await command_queue.enqueue(line(here, "/title First"))
        await command_queue.drain()

        mail = await here.runtime.store.inbox.find("telegram", "2")
        assert mail is not None
        assert mail.state == "answered"


async def test_an_order_whose_next_attempt_an_earlier_process_put_off_is_done_when_it_is_due(tmp_path: Path):
    async with place(tmp_path, []) as here:
        store = here.runtime.store
        await store.inbox.accept(line(here, "/title Mine"), f"command {CHAT.key}", COMMANDS)
        lease = await store.lanes.claim([COMMANDS])
        assert lease is not None
        await store.lanes.release(lease, error="The disk is full.", delay=0.3)

        command_queue = made(here)
        command_queue.resume()
        await command_queue.drain()

        mail = await store.inbox.find("telegram", "1")
        assert mail is not None
        assert mail.state == "answered"


async def test_an_order_that_was_put_off_holds_up_none_that_is_taken_up_meanwhile(tmp_path: Path):
    async with place(tmp_path, []) as here:
        store, other = here.runtime.store, replace(CHAT, chat="2")
        await store.inbox.accept(line(here, "/title Mine"), f"command {CHAT.key}", COMMANDS)
        lease = await store.lanes.claim([COMMANDS])
        assert lease is not None
        await store.lanes.release(lease, error="The disk is full.", delay=3.0)
        command_queue = made(here)
        command_queue.resume()
        await asyncio.sleep(0.05)

        await store.inbox.accept(replace(line(here, "/title Other", "2"), conversation=other), "command 2", COMMANDS)
        command_queue.resume()

        async with asyncio.timeout(2):
            while (await store.inbox.find("telegram", "2")).state != "answered":
                await asyncio.sleep(0.01)
        await command_queue.drain()
