"""Executes the tool calls of a reply: which may run in parallel, and the steps of one call from request to committed
result."""

from __future__ import annotations

import asyncio
import json
import logging
import os.path
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Protocol, TypeVar

from hermes_agent.agent.agent import Agent, Labels, Proposed, RunContext
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.prompt import without_mark
from hermes_agent.agent.session import Session
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Capability, Effect
from hermes_agent.core.errors import (
    BadArguments,
    GoingInCircles,
    HermesError,
    OutcomeUnknown,
    Refused,
    StoreError,
    ToolError,
    UnknownTool,
)
from hermes_agent.core.events import ToolEnded, ToolStarted
from hermes_agent.core.messages import (
    LABELS,
    File,
    Image,
    Message,
    Origin,
    Quoted,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Trust,
    trust_of,
)
from hermes_agent.core.tool import Answer, CallFacts, Tool, unexpected
from hermes_agent.store.effects import Intent


class HasFacts(Protocol):
    """Part of a planned tool call that decides what may run in parallel: its tool and its facts. Without facts the
    call has only an answer, and conflicts with no other."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> CallFacts | None: ...


ABOUT_PATHS = {Effect.READS, Effect.WRITES, Effect.KEYED}
"""Effects that touch nothing but the paths that the call names, where it names any."""

P = TypeVar("P", bound=HasFacts)


def side_by_side(planned: Sequence[P]) -> Iterator[list[P]]:
    """Group calls in batches: those of one batch may run in parallel, the batches run in order. A call comes after
    the calls of tools that it depends on."""
    batch: list[P] = []
    for item in _ordered(planned):
        if batch and not all(_independent(item, other) for other in batch):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def _ordered(planned: Sequence[P]) -> list[P]:
    """As asked, but for those that depend on a tool that is called later."""
    left, ordered = list(planned), []
    while left:
        names = {item.name for item in left}
        free = next((item for item in left if names.isdisjoint(_depends_on(item) - {item.name})), left[0])
        left.remove(free)
        ordered.append(free)
    return ordered


def _depends_on(item: HasFacts) -> set[str]:
    return set(item.facts.depends_on) if item.facts else set()


def _independent(item: HasFacts, before: HasFacts) -> bool:
    one, other = item.facts, before.facts
    if one is None or other is None:
        return True
    if before.name in one.depends_on:
        return False
    effects = {one.effect, other.effect}
    if effects == {Effect.READS}:
        return True
    if not effects <= ABOUT_PATHS or one.paths is None or other.paths is None:
        return False
    return _disjoint(one.paths, other.paths)


def _disjoint(ours: Iterable[str], theirs: Sequence[str]) -> bool:
    return not any(_within(a, b) or _within(b, a) for a in ours for b in theirs)


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(outer.rstrip(os.path.sep) + os.path.sep)


log = logging.getLogger(__name__)

INTERRUPTED = (
    "Interrupted: the program ended while this call was running. Its outcome is unknown. Check what it did before you "
    "do it again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A tool call before it runs: with its tool and facts, or, where it is invalid (`problem`) or an equal call was
    answered before (`known`), already with its answer."""

    call: ToolCall
    tool: Tool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    facts: CallFacts | None = None
    problem: ToolError | None = None
    known: Answer | None = None

    @property
    def name(self) -> str:
        """The tool that runs, also when called through another one."""
        return self.call.name if self.tool is None else self.tool.schema.name


async def act(agent: Agent, session: Session, journal: Journal, calls: Sequence[ToolCall]) -> bool:
    """Run the calls of one reply; every one has its result in the journal when this returns.

    Returns True where none of them could run because tools or arguments were wrong.
    """
    planned = [plan(agent, session, call) for call in calls]
    for batch in side_by_side(planned):
        if len(batch) == 1:
            await answer(agent, session, journal, batch[0])
        else:
            await together(agent, session, journal, batch)
    return bool(planned) and all(isinstance(item.problem, UnknownTool | BadArguments) for item in planned)


async def together(agent: Agent, session: Session, journal: Journal, batch: Sequence[Planned]) -> None:
    """Run the calls of one batch in parallel, at most `max_parallel` at a time, after answering invalid ones. Equal
    reading calls run once."""
    possible = _equal([item for item in batch if item.problem is None])
    for item in batch:
        if item.problem is not None:
            await answer(agent, session, journal, item)
    limit = asyncio.Semaphore(agent.max_parallel)

    async def one(equal: Sequence[Planned]) -> None:
        async with limit:
            known = await answer(agent, session, journal, equal[0])
        for item in equal[1:]:
            await answer(agent, session, journal, replace(item, known=known))

    try:
        async with asyncio.TaskGroup() as group:
            for equal in possible:
                group.create_task(one(equal))
    except* (StoreError, GoingInCircles) as ended:
        raise ended.exceptions[0] from None


def _equal(batch: Sequence[Planned]) -> list[list[Planned]]:
    """The calls, those together that read the same."""
    groups: dict[object, list[Planned]] = {}
    for item in batch:
        reads = item.facts is not None and item.facts.effect is Effect.READS
        key = (item.name, json.dumps(item.arguments, sort_keys=True, default=repr)) if reads else id(item)
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def plan(agent: Agent, session: Session, call: ToolCall) -> Planned:
    """Resolve the tool and the facts of a call; any error becomes its answer."""
    try:
        if call.broken:
            raise BadArguments(
                f"The arguments are not a JSON object: {call.broken[:200]}", hint="Send the call again as valid JSON."
            )
        tool, arguments = agent.tools.resolve(call.name, call.arguments)
        facts = tool.facts(arguments, session.workspace)
        return Planned(call=call, tool=tool, arguments=arguments, facts=facts)
    except ToolError as problem:
        return Planned(call=call, problem=problem)


async def answer(agent: Agent, session: Session, journal: Journal, item: Planned, *, outer: str = "") -> Answer:
    """Take one call from request to committed result: permission, then the intent, then the effect. `outer` is the
    running tool call that makes this one."""
    began, since = agent.clock.monotonic(), agent.clock.now()

    async def within(call: ToolCall) -> Answer:
        return await answer(agent, session, journal, plan(agent, session, call), outer=item.call.id)

    context = RunContext(agent, session, journal, item.call, None if outer else within)
    journal.in_hand.begun[item.call.id] = outer
    try:
        await journal.tell_waiting()
        if (result := item.known) is None:
            result = await _answered(item, context, _run(agent, session, journal, item, context))
            if (proposed := _proposed(item, context)) is not None:
                result = await _answered(item, context, _looked_over(agent, proposed, result))
                result = await _labelled(agent, proposed, context, result)
    finally:
        journal.in_hand.begun.pop(item.call.id, None)  # Two calls of one reply may have one id.
    message = Message(
        role=Role.TOOL,
        parts=(
            ToolResult(
                call_id=item.call.id,
                name=item.call.name,
                parts=tuple(_outside(part, session.mark, agent.redact) for part in result.parts),
                is_error=result.is_error,
            ),
        ),
    )
    ended = ToolEnded(
        turn=session.turn,
        call_id=item.call.id,
        tool=item.name,
        message=message,
        is_error=result.is_error,
        seconds=agent.clock.monotonic() - began - context.asked_for,
    )
    changes = [journal.finish_effect(item.call.id)] if item.call.id in session.started else []
    journal.post(ended, changes=changes, durable=bool(changes))
    await journal.tell_waiting()
    changes_files = item.tool is not None and (Capability.EXEC in item.tool.needs or not _reads(item))
    if agent.labels and changes_files:
        doubtful = max(context.trust, *map(trust_of, result.parts)) is Trust.OUTSIDE
        if doubtful:
            await agent.labels.doubt(since, agent.clock.now())
        if result.over is not None:
            journal.spawn(_doubted(agent, agent.labels, result.over, since, sure=doubtful), name="doubt")
    return result


def _reads(item: Planned) -> bool:
    return item.facts is None or item.facts.effect is Effect.READS


async def _doubted(agent: Agent, labels: Labels, over: asyncio.Task[bool], since: float, *, sure: bool) -> None:
    """Note the doubt in what a command wrote that went on after its call."""
    if await over or sure:
        await labels.doubt(since, agent.clock.now())


async def _answered(item: Planned, context: RunContext, work: Awaitable[Answer]) -> Answer:
    """What the work gives, a failure as an answer too."""
    # Boundary: one tool call.
    try:
        return await work
    except (StoreError, GoingInCircles):
        raise
    except HermesError as error:
        return failure(error, context.origin)
    except Exception as error:
        log.exception("tool %s failed", item.call.name)
        return failure(unexpected(error), context.origin)


async def _labelled(agent: Agent, proposed: Proposed, context: RunContext, result: Answer) -> Answer:
    """The answer with the label of each part: `file` and `workspace` stand for what the folder is, and what a call says
    that made others is as the worst of theirs."""
    labels, facts = agent.labels, proposed.facts
    theirs = {part.origin for part in result.parts} & {Origin.FILE, Origin.WORKSPACE}
    paths = facts.paths if Origin.FILE in theirs else ()
    said = "\n".join(map(str, proposed.arguments.values())) if Capability.EXEC in proposed.tool.needs else ""
    trusted = bool(theirs) and labels is not None and paths is not None and await labels.is_trusted(paths, said)
    own = Origin.WORKSPACE if trusted else Origin.FILE
    parts = [replace(part, origin=own) if part.origin in theirs else part for part in result.parts]
    if context.inner:
        parts = [
            part if trust_of(part) > context.inner else replace(part, origin=LABELS[context.inner]) for part in parts
        ]
    return replace(result, parts=tuple(parts))


def _proposed(item: Planned, context: RunContext) -> Proposed | None:
    if item.tool is None or item.facts is None:
        return None
    return Proposed(
        call=item.call,
        tool=item.tool,
        arguments=item.arguments,
        facts=item.facts,
        context=context,
        turn=context.turn,
    )


async def _looked_over(agent: Agent, proposed: Proposed, result: Answer) -> Answer:
    for hook in reversed(agent.hooks):
        result = await hook.after_call(proposed, result)
    return result


async def _run(agent: Agent, session: Session, journal: Journal, item: Planned, context: RunContext) -> Answer:
    proposed = _proposed(item, context)
    if proposed is None:
        raise item.problem or UnknownTool(f"There is no tool `{item.call.name}`.")
    before = session.started.get(item.call.id)
    if before is Effect.WRITES:
        raise OutcomeUnknown(INTERRUPTED)
    context.attach = before is not None
    if before is None:
        _heed_pins(session, proposed.tool, proposed.facts)
        _heed_dependencies(session, proposed.facts)
        for hook in agent.hooks:
            await hook.before_call(proposed)
        await _declare(agent, session, journal, item, proposed.facts, context.key)
    else:
        context.begun_at = await journal.begun_at(item.call.id)
    journal.alive()
    context.origin = proposed.facts.origin
    return await proposed.tool.run(proposed.arguments, context)


def _heed_pins(session: Session, tool: Tool, facts: CallFacts) -> None:
    """Raise `Refused` where the person pinned something that forbids the call."""
    for pin in session.pins.values():
        if facts.effect is not Effect.READS and not tool.needs.isdisjoint(pin.denies):
            quoted = Quoted(text=pin.text, origin=pin.origin)
            raise Refused("The person pinned:", hint="Only they can take the pin off (`/unpin`).", quoted=quoted)


def _heed_dependencies(session: Session, facts: CallFacts) -> None:
    """Raise `Refused` where a tool that this one depends on has not answered yet."""
    missing = [name for name in facts.depends_on if name not in session.answered]
    if missing:
        names = " and ".join(f"`{name}`" for name in missing)
        raise Refused(f"This needs an answer of {names} first.", hint=f"Call {names}, then this again.")


def _outside(part: Text | Image | File, mark: str, redact: Callable[[str], str]) -> Text | Image | File:
    """What a tool answered, without secrets, and unable to pass for a note of the runtime."""
    if not isinstance(part, Text):
        return part
    text = redact(part.text)
    text = without_mark(text, mark) if mark and mark in text else text
    return part if text == part.text else replace(part, text=text)


async def _declare(agent: Agent, session: Session, journal: Journal, item: Planned, facts: CallFacts, key: str) -> None:
    """Say that the call starts: in the log with its intent where it does more than read."""
    started = ToolStarted(
        turn=session.turn, call_id=item.call.id, tool=item.name, effect=facts.effect, summary=facts.summary
    )
    if facts.effect is Effect.READS:
        journal.live(started)
        return
    is_elsewhere = item.tool is not None and Capability.MCP in item.tool.needs  # Its server has the record.
    location = agent.location if facts.effect is Effect.EXEC and not is_elsewhere else None
    intent = Intent(
        call_id=item.call.id,
        tool=item.name,
        effect=facts.effect,
        key=key,
        summary=facts.summary,
        location=NOWHERE if location is None else await location(session.workspace),
    )
    await journal.commit(started, changes=[journal.intend(intent)])


def failure(error: HermesError, origin: Origin) -> Answer:
    """A failed call as an answer: `{"error": ..., "kind": ..., "hint": ...}`, and what it quotes. `origin` labels the
    sentence, which may name what the call was given or found."""
    if not isinstance(error, ToolError):
        return Answer(parts=(Text(text=error_text(str(error), "failed", ""), origin=origin),), is_error=True)
    own = Text(text=error_text(error.message, error.kind, error.hint), origin=origin)
    quoted = (Text(text=f"\n{error.quoted.text}", origin=error.quoted.origin),) if error.quoted else ()
    return Answer(parts=(own, *quoted), is_error=True)


def error_text(error: str, kind: str, hint: str) -> str:
    """The JSON of a failure for the model."""
    return json.dumps({"error": error, "kind": kind} | ({"hint": hint} if hint else {}), ensure_ascii=False)
