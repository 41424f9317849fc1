"""Durable queue of slash commands from chats: runs them in order per conversation and answers in the chat."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from hermes_agent.app.commands.command import Desk, NoCommand, command_of, find_command, perform
from hermes_agent.app.operations.questions import answer_in_words, answer_question, answer_to
from hermes_agent.app.system import System
from hermes_agent.core.chat import SAID, Content, Conversation, Inbound, Letter
from hermes_agent.core.errors import HermesError, StoreError, UnknownSession
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.quick_replies import may_answer
from hermes_agent.host.tasks import spawn
from hermes_agent.runs.one_run import give_back, told_of
from hermes_agent.store.inbox import Ending, Unreadable
from hermes_agent.store.leases import Lease
from hermes_agent.store.sessions import Session
from hermes_agent.store.transaction import Transaction

log = logging.getLogger(__name__)

COMMANDS = "commands"
"""The queue of lanes whose mail is commands."""
LANE = "command "
"""How their names begin."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0
"""Seconds between two tries where the store fails, doubling."""
ModelOf = Callable[[Conversation], str]


async def as_it_is(inbound: Inbound) -> Inbound:
    """The default completion of a message: returns it unchanged."""
    return inbound


DEADLY = "Failed: the program crashed {crashes} times during this command. Send it again to retry."


def is_command(text: str) -> bool:
    """Whether a text looks like a slash command, known or not."""
    try:
        return find_command(text) is not None
    except NoCommand:
        return True


def parse_command(text: str) -> tuple[str, bool]:
    """The name of the command that a line calls, and whether there is one (otherwise it may be a skill)."""
    name = text.strip().partition(" ")[0].removeprefix("/")
    try:
        found = find_command(f"/{name}")
        return (found[0].name, True) if found else (name, False)
    except NoCommand:
        return name, False


def bypasses_queue(name: str) -> bool:
    """Whether the command of that name runs ahead of the queue."""
    return command_of(name).at_once


class CommandQueue:
    """Runs queued slash commands of chats; one that a crash interrupted is run again. `answered` is called when the
    outbox has a new answer. New sessions work in `workspace`, with the model from `model_of`."""

    def __init__(
        self, runtime: System, workspace: str, answered: Callable[[], None], model_of: ModelOf = lambda _: ""
    ) -> None:
        self._model_of = model_of
        self._runtime = runtime
        self._store = runtime.store
        self._locks = runtime.hermes.scheduler.locks
        self.workspace = workspace
        self._answered = answered
        self.complete: Callable[[Inbound], Awaitable[Inbound]] = as_it_is
        """Gets what a message holds by reference alone, when it is its turn."""
        self._tasks: dict[str | None, asyncio.Task[None]] = {}
        self._asked: dict[str | None, asyncio.Event] = {}

    async def enqueue(self, inbound: Inbound) -> None:
        """Store a command durably and start a worker for its lane. A duplicate is ignored."""
        lane = lane_of(inbound.conversation)
        if await self._store.inbox.accept(inbound, lane, COMMANDS) is not None:
            self._ensure_worker(lane)

    def on_withdrawn(self, lane: str) -> None:
        """A message of this lane was deleted by its sender: wake the worker if it is a command lane."""
        if lane.startswith(LANE):
            self._ensure_worker(lane)

    def wait(self, conversation: Conversation) -> bool:
        """Whether commands of this conversation are queued or running; later messages have to wait for them."""
        return None in self._tasks or lane_of(conversation) in self._tasks

    async def do_at_once(self, inbound: Inbound) -> None:
        """Run a command ahead of the queue, once, and send its answer."""
        if not await self.is_answered(inbound):
            await self.answer(inbound, await self._do(inbound))

    async def stop(self, inbound: Inbound, *, fetched: bool = False) -> None:
        """Stop the conversation's run at once, ahead of the queue, and say so. `fetched`: other work of it was
        already stopped."""
        record = await self._store.sessions.current(inbound.conversation.key)
        stopped = (record is not None and await self._runtime.hermes.stop(record.id)) or fetched
        await self.answer(inbound, "Stopped." if stopped else "Nothing is running.")

    async def is_answered(self, inbound: Inbound) -> bool:
        """Whether `answer` answered this message."""
        return await self._store.outbox.find(_letter(inbound, inbound.conversation, "").key) is not None

    async def answer(self, inbound: Inbound, text: str) -> None:
        """Put an answer into the outbox for the chat of this message, once."""
        await self._store.write(lambda tx: self._store.outbox.put(tx, _letter(inbound, inbound.conversation, text)))
        self._answered()

    async def take_reply(self, inbound: Inbound, record: Session) -> bool:
        """Whether the words answer a question under a reply; what came of it is sent, once. Raises `StoreError`."""
        if not may_answer(inbound.text):
            return False
        if await self.is_answered(inbound):
            return True
        try:
            done = await answer_in_words(self._desk(inbound, record).access, inbound.text)
        except StoreError:
            raise
        except HermesError as error:
            done = str(error)
        if done is not None:
            await self.answer(inbound, done)
        return done is not None

    async def press(self, inbound: Inbound, session: str) -> None:
        """Answer such a question by its button, and send what came of it. Raises `HermesError`."""
        access = self._desk(inbound, await self._runtime.hermes.record(session)).access
        await self.answer(inbound, await answer_question(access, inbound.answers, inbound.text))

    def resume(self) -> None:
        """Run commands that earlier processes left in the queue."""
        self._ensure_worker(None)

    async def drain(self) -> None:
        """Wait until no command is running."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks.values()))

    def _ensure_worker(self, lane: str | None) -> None:
        if lane not in self._tasks:
            self._asked[lane] = asyncio.Event()
            self._tasks[lane] = spawn(self._drain(lane), name="orders")
        self._asked[lane].set()

    async def _drain(self, lane: str | None) -> None:
        """Worker loop: run queued commands of the lane (None: of any lane) until none is left, also after a pause."""
        asked, pause = self._asked[lane], FIRST_PAUSE
        try:
            while asked.is_set():
                asked.clear()  # Before the look, so that nobody asks between it and the end.
                wait = await self._done(lane, pause)
                if wait is not None:
                    pause = min(2 * pause, LONGEST_PAUSE)
                    await _within(asked, max(wait, FIRST_PAUSE))
                    asked.set()
        finally:
            del self._tasks[lane], self._asked[lane]

    async def _done(self, lane: str | None, pause: float) -> float | None:
        """Run all ready lanes in parallel. Returns seconds until the next is ready (`pause` if the store fails),
        None if the queue is empty."""
        ready: float | None = None
        try:
            async with asyncio.TaskGroup() as side_by_side:
                while (lease := await self._locks.claim(COMMANDS, lane)) is not None:
                    side_by_side.create_task(self._work(lease))
                ready = await self._store.lanes.next_ready([COMMANDS], [lane] if lane else None)
        except* StoreError as failed:
            error, ready = failed.exceptions[0], pause
            log.exception("commands wait: the store failed: %s", error, exc_info=type(error) is StoreError)
        return ready

    async def _work(self, lease: Lease) -> None:
        released = False
        try:
            while not released and (waiting := await self._store.inbox.waiting(lease)):
                row, inbound = waiting[0]
                if isinstance(inbound, Unreadable):
                    letter = _letter(inbound, Conversation.parse(lease.lane.removeprefix(LANE)), str(inbound), row)
                    released = await self._end(lease, row, letter, str(inbound))
                    continue
                if inbound.withdraws:  # What an order said to the agent meanwhile is mail of another lane.
                    back = replace(inbound, source_id=inbound.source_id.removesuffix(f":{lease.lane}"))
                    await self._runtime.hermes.withdraw(back, moderated=True)
                gone = {each.withdraws for _, each in waiting if isinstance(each, Inbound)} - {""}
                text = ""
                if not {inbound.withdraws, inbound.identity} & gone:
                    dead = lease.poison or (DEADLY.format(crashes=lease.crashes) if lease.deadly else "")
                    text = dead or await self._do(inbound)
                released = await self._end(lease, row, _letter(inbound, inbound.conversation, text, row))
        except StoreError as error:
            await give_back(self._store, lease, error)
            raise
        finally:
            self._locks.on_released(lease)

    async def _end(self, lease: Lease, row: int, letter: Letter, refused: str = "") -> bool:
        """Commit the end of a command (`refused`: why it was not run) with its answer. Returns whether the lane is
        released."""
        ending = Ending.REFUSED if refused else Ending.ANSWERED

        async def change(tx: Transaction) -> bool:
            if letter.content.text:
                await self._store.outbox.put(tx, letter)
            return await self._store.inbox.finish(tx, lease, [row], ending, reason=refused)

        released = await self._store.write(change)
        self._answered()
        return released

    async def _do(self, inbound: Inbound) -> str:
        # Boundary: one job.
        try:
            return await self._performed(await self.complete(inbound))
        except UnknownSession as error:
            return str(error)
        except StoreError:
            raise
        except HermesError as error:
            return str(error)
        except Exception as error:
            log.exception("the command %s failed", inbound.text[:40])
            return str(told_of(error))

    async def _performed(self, inbound: Inbound) -> str:
        hermes, record = self._runtime.hermes, await self._session(inbound)
        done = await perform(self._desk(inbound, record))
        if done is None:  # Words that were said after an order, or that a hook reads first.
            await hermes.submit(await self._answering(inbound, record), record.id)
            return ""
        if done.submit is not None:
            # The command itself has the message's identity; what it says has one of its own.
            message = replace(done.submit, source_id=f"{inbound.source_id}{SAID}")
            await hermes.submit(message, done.session or record.id)
        return done.text

    async def _answering(self, inbound: Inbound, record: Session) -> Inbound:
        """The words under an identity of their own, as the answer to the run's question if they are one."""
        said = replace(inbound, source_id=f"{inbound.source_id}{SAID}")
        if any(not isinstance(part, Text) for part in said.parts):
            return said
        is_private = said.conversation.is_private
        answers, answer = await answer_to(self._runtime, record.id, said.text, is_private=is_private)
        if not answers or answer == said.text:
            return replace(said, answers=answers)
        return replace(said, answers=answers, parts=(Text(text=answer, origin=Origin(said.principal.standing)),))

    def _desk(self, inbound: Inbound, record: Session) -> Desk:
        return Desk(runtime=self._runtime, record=record, inbound=inbound, busy=self._runtime.hermes.runs(record.id))

    async def _session(self, inbound: Inbound) -> Session:
        return await self._runtime.hermes.open_session(
            inbound.conversation,
            inbound.principal,
            workspace=self.workspace,
            model=self._model_of(inbound.conversation),
        )


async def _within(asked: asyncio.Event, seconds: float) -> None:
    """Wait until `asked` is set or the seconds have passed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asked.wait()


def lane_of(conversation: Conversation) -> str:
    """The command lane of a conversation."""
    return f"{LANE}{conversation.key}"


def _letter(order: Inbound | Unreadable, to: Conversation, text: str, row: int = 0) -> Letter:
    return Letter(
        key=f"answer:{order.source}:{order.source_id}",
        to=to,
        content=Content(text=text),
        inbox=row,
    )
