"""A worker process that tests kill: claims lanes, does three-step turns with an effect in each step, finishes.

`python store_worker.py URL LOG TTL LOSS`. Each effect appends one line to LOG (`E lane mail step`); once its result is
committed, another (`D lane mail step`). LOSS is the share of commits whose answer is lost (PostgreSQL).
"""

import asyncio
import os
import random
import sys
from dataclasses import dataclass

from hermes_agent.core.chat import Inbound
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import DatabaseUnreachable, LostLease
from hermes_agent.core.events import Entry, MessageTaken, Outcome, RunEnded, ToolEnded, ToolStarted
from hermes_agent.core.messages import Message, Role, said
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.effects import Intent
from hermes_agent.store.inbox import Ending
from hermes_agent.store.leases import Lease
from hermes_agent.store.workers import Timings

QUEUES = ("main",)
STEPS = 3
SLOTS = 3
HANG = "hang"
PATIENT = 10_000  # Deaths are what these tests are made of: nothing is refused for them.


def timings(ttl: float) -> Timings:
    return Timings(ttl=ttl, sweep=0.5, grace=2.0, crashes=PATIENT, crash_pause=1.0)


@dataclass
class Turn:
    """One lane's work under one lease, from wherever its log stands."""

    store: Store
    lease: Lease
    log: int
    number: int = 0
    mail: int = 0
    steps: int = 0

    async def run(self) -> None:
        for entry in await self.store.history.entries(self.lease.lane):
            self.number = entry.number
            self.apply(entry)
        released = False
        while not released:
            if not self.mail:
                waiting = await self.store.inbox.waiting(self.lease)
                if not waiting:
                    raise LostLease("It was stopped before it looked, and somebody else has answered.")
                ((row, inbound), *_) = waiting
                await self.take(row, inbound)
            for step in range(self.steps + 1, STEPS + 1):
                await self.step(step)
            released = await self.finish()

    def apply(self, entry: Entry) -> None:
        match entry.event:
            case MessageTaken(inbox=row):
                self.mail, self.steps = row, 0
            case ToolEnded(turn=step):
                self.steps = step
            case RunEnded():
                self.mail = 0

    def entry(self, event) -> Entry:
        self.number += 1
        return Entry(number=self.number, run=str(self.mail), at=0.0, event=event)

    async def take(self, row: int, inbound: Inbound) -> None:
        if inbound.text == HANG:
            await asyncio.Event().wait()
        self.mail, self.steps = row, 0
        entry = self.entry(MessageTaken(message=said(inbound.text), inbox=row))

        async def change(tx):
            await self.store.inbox.take(tx, self.lease, [row])
            await self.store.history.append(tx, self.lease, [entry])

        await self.store.write(change)

    async def step(self, step: int) -> None:
        call, lane = f"{self.mail}.{step}", self.lease.lane
        open_before = {record.intent.call_id for record in await self.store.effects.open(lane)}
        if call not in open_before:
            started = self.entry(ToolStarted(turn=step, call_id=call, tool="t", effect=Effect.KEYED, summary="s"))
            intent = Intent(call_id=call, tool="t", effect=Effect.KEYED, key=f"{lane}/{call}", summary="s")

            async def begin(tx):
                await self.store.history.append(tx, self.lease, [started])
                await self.store.effects.intend(tx, self.lease, intent)

            await self.store.write(begin)
        self.store.workers.alive(self.lease)
        self.say("E", step)
        result = Message(role=Role.TOOL, parts=())
        ended = self.entry(ToolEnded(turn=step, call_id=call, tool="t", message=result, is_error=False, seconds=0.0))

        async def end(tx):
            await self.store.history.append(tx, self.lease, [ended])
            await self.store.effects.finish(tx, self.lease, call)

        await self.store.write(end)
        self.say("D", step)
        self.steps = step

    async def finish(self) -> bool:
        entry = self.entry(RunEnded(outcome=Outcome.ANSWERED, text="ok", turns=STEPS))
        row, self.mail = self.mail, 0

        async def change(tx):
            await self.store.history.append(tx, self.lease, [entry])
            return await self.store.inbox.finish(tx, self.lease, [row], Ending.ANSWERED)

        return await self.store.write(change)

    def say(self, what: str, step: int) -> None:
        os.write(self.log, f"{what} {self.lease.lane} {self.mail} {step}\n".encode())


async def serve(store: Store, log: int) -> None:
    running: dict[str, asyncio.Task[None]] = {}
    ring: asyncio.Task[bool] | None = None
    while True:
        for lane in [lane for lane, task in running.items() if task.done()]:
            running.pop(lane).result()
        pause = await store.workers.tend(running.keys())
        while len(running) < SLOTS and (lease := await store.lanes.claim(QUEUES)) is not None:
            running[lease.lane] = asyncio.create_task(work(Turn(store, lease, log)))
        if len(running) < SLOTS and (ready := await store.lanes.next_ready(QUEUES)) is not None:
            pause = min(pause, ready)  # What was put aside after a death rings nobody when its time has come.
        ring = ring or asyncio.create_task(store.workers.wait(60.0))
        await asyncio.wait((ring, *running.values()), timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        if ring.done():
            ring.result()
            ring = None


async def work(turn: Turn) -> None:
    try:
        await turn.run()
    except LostLease:
        return


def lose_answers(store: Store, share: float) -> None:
    """Cut the connection right after a commit, or right before it, as a network does."""
    commit = store.engine._commit

    async def lossy(connection) -> None:
        fate = random.random()
        if fate < share / 2:
            connection.terminate()
        await commit(connection)
        if fate > 1 - share / 2:
            connection.terminate()
            raise ConnectionResetError("lost on the way back")

    store.engine._commit = lossy


async def opened(url: str, ttl: float) -> Store:
    """The store, also where the server is just away, as who supervises workers would start another one."""
    while True:
        try:
            return await open_store(url, timings=timings(ttl))
        except DatabaseUnreachable:
            await asyncio.sleep(0.1)


async def main(url: str, log: str, ttl: float, loss: float) -> None:
    store = await opened(url, ttl)
    if loss:
        lose_answers(store, loss)
    await serve(store, os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
