"""A home with conversations and paid calls in it, written through the store as a run writes them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Durable, Entry, MessageTaken, Replied, ToolEnded, ToolStarted
from hermes_agent.core.messages import (
    Message,
    Origin,
    Role,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    said,
)
from hermes_agent.core.section import Section, freeze
from hermes_agent.core.spending import day_of
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.sessions import Session
from hermes_agent.store.usage import UsageRow

LONG_AGO = 1_700_000_000.0
GARDEN, WORK = "20231114_221320_aaaaaa", "20231115_221320_bbbbbb"
SECTIONS = (Section(name="identity", text="You are Hermes."), Section(name="date", text="Today is long ago."))


def replied(text: str, *calls: ToolCall) -> Replied:
    parts = (Thinking(text="hidden thought"), Text(text=text), *calls)
    return Replied(
        turn=1,
        call_id="c1",
        message=Message(role=Role.ASSISTANT, parts=parts),
        stop=StopReason.END,
        usage=Usage(input=10, output=5),
        provider="demo",
        model="scripted",
        cost=None,
        seconds=1.0,
    )


def conversation() -> list[Durable]:
    """A question, a tool call with a long result, an answer; words of several languages and of a hostile kind."""
    call = ToolCall(id="t1", name="read_file", arguments={"path": "garden.md"})
    result = ToolResult(call_id="t1", name="read_file", parts=(Text(text="x" * 3000, origin=Origin.TOOL),))
    return [
        MessageTaken(message=said("When do I plant Tomaten? 什么时候种番茄"), inbox=1),
        replied("I look it up.", call),
        ToolStarted(turn=1, call_id="t1", tool="read_file", effect=Effect.READS, summary="read_file"),
        ToolEnded(
            turn=1,
            call_id="t1",
            tool="read_file",
            message=Message(role=Role.TOOL, parts=(result,)),
            is_error=False,
            seconds=0.1,
        ),
        replied("In May. <script>alert(1)</script> \x1b[31mred"),
    ]


def usage_row(number: int, model: str) -> UsageRow:
    return UsageRow(
        call_id=f"u{number}",
        session=GARDEN,
        run="r",
        turn=number,
        purpose="chat",
        provider="demo",
        model=model,
        prefix="",
        messages=1,
        at=LONG_AGO + 86_400 * number,
        day=day_of(LONG_AGO + 86_400 * number),
        principal="cli:me",
        reserved=0.5,
    )


async def _fill(store: Store) -> None:
    prefix = freeze(SECTIONS, ())
    for number, (name, title, events) in enumerate(
        [(GARDEN, "The garden", conversation()), (WORK, "Work\x1b[2J", [MessageTaken(message=said("Other words"))])]
    ):
        at = LONG_AGO + 86_400 * number
        session = Session(
            id=name,
            principal="cli:me",
            conversation=f"cli:folder:/{number}",
            surface="cli",
            created=at,
            updated=at,
            title=title,
            prefix=prefix.hash if name == GARDEN else "",
        )
        await store.write(lambda tx, session=session: store.sessions.create(tx, session))
        lease = await store.lanes.hold(name, "cli")
        assert lease is not None
        entries = [Entry(number=place, run="r", at=at, event=event) for place, event in enumerate(events, 1)]
        await store.write(lambda tx, lease=lease, entries=entries: store.history.append(tx, lease, entries))
        await store.lanes.release(lease)
    await store.write(lambda tx: store.prefixes.put(tx, prefix, SECTIONS))
    for number, model in enumerate(["priced", "priced", "unpriced", "open"]):
        row = usage_row(number, model)
        await store.write(lambda tx, row=row: store.usage.open(tx, row))
    usage = Usage(input=1000, output=200, cached=500)
    await store.write(lambda tx: store.usage.complete(tx, "u0", usage, 0.25, "ok", 1.0))
    await store.write(lambda tx: store.usage.complete(tx, "u1", usage, 0.5, "ok", 1.0))
    await store.write(lambda tx: store.usage.complete(tx, "u2", usage, None, "ok", 1.0))


def filled(home: Path) -> Path:
    """Write the conversations into a new home."""

    home.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def run() -> None:
        store = await open_store(home / "hermes.db")
        try:
            await _fill(store)
        finally:
            await store.close()

    asyncio.run(run())
    return home
