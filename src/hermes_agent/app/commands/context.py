"""Slash commands about the context window: /context, /compress, /pin and /unpin."""

from __future__ import annotations

import re
from collections import Counter

from hermes_agent.agent.session import Session
from hermes_agent.app.commands.command import Desk, Done, command
from hermes_agent.app.operations.choices import CHANGES
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Compacted, Pinned, PrefixFrozen, Unpinned
from hermes_agent.core.messages import Message, Origin, Role
from hermes_agent.core.shown import plural

READ_ONLY = re.compile(r"\bread[- ]?only\b", re.IGNORECASE)
KINDS = {Role.USER: "your messages", Role.ASSISTANT: "replies", Role.TOOL: "tool results"}


@command("context", "Show what fills the model's window.", while_running=True)
async def context(desk: Desk, _: str) -> Done:
    """Show what fills the model's window: the prefix by section, then the messages by kind."""
    view = await desk.hermes.view(desk.record.id)
    pages = desk.hermes.store.history.pages(desk.record.id)
    entries = [entry async for page in pages for entry in page if isinstance(entry.event, PrefixFrozen | Compacted)]
    frozen = [entry.event for entry in entries if isinstance(entry.event, PrefixFrozen)]
    rows = [(section.name, section.tokens) for section in frozen[-1].sections] if frozen else []
    rows += _by_kind(view).items()
    total = sum(tokens for _, tokens in rows)
    lines = [f"{name:<18}{tokens:>9,}" for name, tokens in rows if tokens]
    window = desk.route.facts.window if desk.route else 0
    share = f"  of {window:,} ({100 * total / window:.1f} %)" if window else ""
    lines.append(f"{'together':<18}{total:>9,}{share}")
    if shortened := [entry.event for entry in entries if isinstance(entry.event, Compacted)]:
        last = shortened[-1]
        lines.append(f"Compacted {plural(len(shortened), 'time')}, last from {last.before:,} to {last.after:,} tokens.")
    return Done(text="\n".join(lines))


@command("compress", "Compact the conversation for the model; the log keeps everything.", arguments="[what matters]")
async def compress(desk: Desk, rest: str) -> Done:
    """Compact the conversation; the rest of the line says what to keep."""
    before = sum((await desk.hermes.view(desk.record.id)).weights)
    if not await _shorten(desk, rest):
        return Done(text=f"Nothing to gain: the conversation has {before:,} tokens, most of them recent.")
    after = sum((await desk.hermes.view(desk.record.id)).weights)
    return Done(text=f"The model now gets {after:,} instead of {before:,} tokens. The log keeps everything.")


@command("pin", 'Pin words that every request shows; "read only" is enforced.', arguments="[words]", while_running=True)
async def pin(desk: Desk, rest: str) -> Done:
    """Pin text that every request shows, or list the pins. "Read only" in it also denies capabilities that change
    things."""
    if not rest:
        pins = (await desk.hermes.view(desk.record.id)).pins.values()
        return Done(text="\n".join(f"{each.pin}  {each.text}" for each in pins) or "Nothing is pinned.")
    denies = CHANGES if READ_ONLY.search(rest) else ()
    whose = Origin(desk.inbound.principal.standing)
    pinned = Pinned(pin=desk.runtime.ids.short()[:4], text=" ".join(rest.split()), denies=denies, origin=whose)
    async with desk.hermes.holding(desk.record.id, beside_run=True) as journal:
        await journal.commit(pinned)
    enforced = " Until then no tool changes anything." if denies else ""
    return Done(text=f"Pinned until `/unpin {pinned.pin}`.{enforced}")


@command("unpin", "Remove a pin.", arguments="ID|all", while_running=True)
async def unpin(desk: Desk, rest: str) -> Done:
    """Remove one pin, or all."""
    pins = (await desk.hermes.view(desk.record.id)).pins
    chosen = list(pins) if rest == "all" else [rest]
    if not chosen or not all(each in pins for each in chosen):
        raise HermesError(f"There is no pin `{rest}`. `/pin` lists them, `/unpin all` removes all.")
    async with desk.hermes.holding(desk.record.id, beside_run=True) as journal:
        await journal.commit(*(Unpinned(pin=each) for each in chosen))
    return Done(text=f"Removed {plural(len(chosen), 'pin')}.")


async def _shorten(desk: Desk, focus: str) -> bool:
    async with (
        desk.hermes.holding(desk.record.id) as journal,
        desk.runtime.snapshots.apart(desk.record, journal) as agent,
    ):
        if agent.compactor is None:
            return False
        return await agent.compactor.asked(journal.session, journal, agent.model.window, focus)


def _by_kind(view: Session) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for message, weight in zip(view.messages, view.weights, strict=True):
        kinds[_kind(message)] += weight
    return kinds


def _kind(message: Message) -> str:
    return "runtime notes" if message.is_runtime else KINDS[message.role]
