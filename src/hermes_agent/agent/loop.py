"""The agent loop: take the inbox, ask the model, run its calls, repeat; a `RunEnded` event records how the run
ended."""

from __future__ import annotations

from hermes_agent.agent.act import act
from hermes_agent.agent.agent import Agent, Closing, Prepares
from hermes_agent.agent.ask import ask
from hermes_agent.agent.inbox import take_inbox
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session
from hermes_agent.agent.stop import WITHDRAWN, CutShort, StopSwitch
from hermes_agent.core.chat import TAKEN_BACK
from hermes_agent.core.clock import Ids
from hermes_agent.core.errors import HermesError, LimitReached, StoreError, TimedOut, ToolError
from hermes_agent.core.events import MessageTaken, Notice, Outcome, Replied, RunEnded, RunStarted, ToolEnded, Undone
from hermes_agent.core.messages import Message, Origin, Reply, Role, StopReason, Text, ToolResult, Usage, said
from hermes_agent.store.inbox import Ending

MAX_CONTINUATIONS = 3
"""How often a reply that was cut at the length limit is asked to go on."""

MAX_MISSES = 3
"""Turns in a row whose calls were all for unknown tools or with arguments that do not fit."""

ENDINGS = {
    Outcome.ANSWERED: Ending.ANSWERED,
    Outcome.LIMIT: Ending.WAITING,
    Outcome.STOPPED: Ending.REFUSED,
    Outcome.FAILED: Ending.REFUSED,
}

GO_ON = "Your reply was cut off at the length limit. Go on exactly where it stopped, without repeating anything."
STILL_CUT = (
    f"The reply is incomplete: the model reached its length limit {MAX_CONTINUATIONS + 1} times. "
    "`/continue` asks for the rest."
)
CUT_OFF = said(GO_ON, Origin.RUNTIME)
NOT_TO_BE_ANSWERED = said(
    "The sender deleted the last message, so the run stopped. Do not answer it.",
    Origin.RUNTIME,
)
TOO_LATE = "Nothing waits for that any more."
SUM_UP = (
    "The limit of model calls for this run is reached. Without using tools, say briefly what is done and what is left."
)


async def run(agent: Agent, session: Session, journal: Journal, switch: StopSwitch) -> RunEnded:
    """Run a session until nothing is left to do; its end.

    Continues from the log, so the same call serves a new message and the rest of a killed run. Raises only
    `StoreError` (the log cannot be written) and cancellation; the run can be resumed from the log after both.
    """
    # One that was killed before it took its mail still has its first look to come.
    goes_on, ended = session.running and bool(session.turn or journal.mailbox.last_taken), None
    await start_run(agent, session, journal)
    journal.ends = lambda: switch.strikes
    try:
        async with switch.within(agent.budget.seconds_left(agent.clock.monotonic())):
            ended = await outcome(agent, session, journal, switch, first=not goes_on)
            return await end(session, journal, ended, agent.closing)
    except CutShort:
        async with journal.last_words():
            if ended is not None and not session.running:  # Its end is being written already.
                await journal.settled()
                return ended
            if not (ended or journal.mailbox.last_taken or switch.makes_way or switch.withdrawn):
                await take_inbox(session, journal, first=True)  # The stop came first; it was about this mail.
            return await end(session, journal, ended or switch.verdict(session.turn), agent.closing)


async def outcome(agent: Agent, session: Session, journal: Journal, switch: StopSwitch, *, first: bool) -> RunEnded:
    """The end of the work, also for an error."""
    try:
        ended = await within_limits(agent, session, journal, first=first)
        return ended if agent.finishing is None else await agent.finishing(session.id, ended)
    except StoreError:
        raise
    except HermesError as error:
        if isinstance(error, TimedOut) and agent.budget.seconds_left(agent.clock.monotonic()) == 0:
            return switch.verdict(session.turn)  # The model's clock, set to the run's deadline, was the first to ring.
        return failed(error, session.turn)


async def start_run(agent: Agent, session: Session, journal: Journal) -> None:
    """Log the start of the run, or resume the one that a crash interrupted."""
    await journal.tell_waiting()  # What it waited for when it was left may have been taken back.
    if session.running:
        agent.budget.turns = session.turn
        await journal.commit(Notice(text="The run was interrupted. It resumes from its last committed step."))
    else:
        session.run = agent.ids.short()
        journal.post(RunStarted(resumed=session.awaits_reply))  # shares the commit of the mail that it takes


def failed(error: HermesError, turns: int) -> RunEnded:
    """The end of a run after an error."""
    return RunEnded(outcome=Outcome.FAILED, text=str(error), turns=turns, reason="error", error=type(error).__name__)


async def within_limits(agent: Agent, session: Session, journal: Journal, *, first: bool) -> RunEnded:
    """Work until done or until a limit is reached."""
    try:
        return await work(agent, session, journal, first=first)
    except LimitReached as limit:
        return await at_limit(agent, session, journal, limit)


async def work(agent: Agent, session: Session, journal: Journal, *, first: bool) -> RunEnded:
    """The loop: turns until a reply requests no tools. `first` where the run starts with this.

    A reply ends its run, so that it is delivered; mail that came too late belongs to the next run.
    """
    misses = 0
    await act(agent, session, journal, session.open_calls)
    if not first and session.turn and not session.awaits_reply and not await goes_on(session, journal):
        return done(session)  # A crash came between the reply and the end.
    while True:
        unreadable = await take_inbox(session, journal, tail=agent.tail, first=first)
        first = False
        if journal.mailbox.back.lapsed:
            return RunEnded(outcome=Outcome.STOPPED, text="", turns=session.turn, reason=WITHDRAWN)
        if unreadable:
            raise HermesError(unreadable)
        if not session.awaits_reply:
            return done(session)
        agent.budget.spend_turn(agent.clock.monotonic())
        reply = await ask(agent, session, journal)
        if reply.message.tool_calls:
            misses = misses + 1 if await act(agent, session, journal, reply.message.tool_calls) else 0
            if misses > MAX_MISSES:
                raise ToolError("The model kept calling tools that do not exist or with arguments that do not fit.")
            continue
        if not await goes_on(session, journal):
            await journal.mailbox.read()  # A replay ends its run, too, with the mail of the next one there.
            return done(session)


async def goes_on(session: Session, journal: Journal) -> bool:
    """Whether the last reply was cut at the length limit and the model is asked to continue it."""
    asks = session.is_cut and len(spoken(session)) <= MAX_CONTINUATIONS
    if asks:
        await journal.commit(MessageTaken(message=CUT_OFF))
    return asks


def done(session: Session) -> RunEnded:
    """The end of a run with the last reply in the log, also after a crash between reply and end. A run that never
    asked a model only recorded late answers and does not repeat an earlier reply. A reply that is still cut says
    so."""
    if session.is_cut:
        limit = LimitReached(STILL_CUT, limit="length limit")
        return limited(f"{''.join(spoken(session))}\n\n{limit}", session.turn, limit)
    text = "".join(spoken(session)) if session.turn else TOO_LATE
    return RunEnded(outcome=Outcome.ANSWERED, text=text, turns=session.turn)


def spoken(session: Session) -> list[str]:
    """The pieces of the last reply: several where it was cut at the length limit and continued."""
    pieces: list[str] = []
    for message in reversed(session.messages):
        if message.role is Role.ASSISTANT and not message.tool_calls:
            pieces.insert(0, message.text)
        elif not _is_aside(message):
            break
    return pieces


def _is_aside(message: Message) -> bool:
    """Whether the runtime said this between two pieces of a reply: to go on, or that a limit is near."""
    return message.text != SUM_UP and message.is_runtime


async def at_limit(agent: Agent, session: Session, journal: Journal, limit: LimitReached) -> RunEnded:
    """End at a limit; at the turn limit the model summarises, without tools, what is done and what is left."""
    text = str(limit)
    if limit.limit == "turn limit":
        before = session.number
        await journal.commit(MessageTaken(message=said(SUM_UP, Origin.RUNTIME)))
        try:
            reply: Reply = await ask(agent, session, journal, use_tools=False)
            text = f"{reply.message.text}\n\n{limit}" if reply.message.text else text
        except HermesError as error:
            if isinstance(error, StoreError):
                raise
            await journal.commit(Undone(to=before))  # Whoever lets the run go on wants work, not the summary.
            text = f"{limit} (No summary: {error})"
    return limited(text, session.turn, limit)


def limited(text: str, turns: int, limit: LimitReached) -> RunEnded:
    """The end of a run at a limit, which the person can continue."""
    return RunEnded(outcome=Outcome.LIMIT, text=text, turns=turns, reason=limit.limit, error="LimitReached")


async def end(session: Session, journal: Journal, ended: RunEnded, closing_by: tuple[Closing, ...] = ()) -> RunEnded:
    """Close open calls and commit the end together with that of every message of the run."""
    await journal.tell_waiting()
    for each in closing_by:
        if isinstance(each, Prepares):
            await journal.settled()
            await each.prepare(session, ended)
    ended = journal.clean(ended)
    closing: list[Replied | ToolEnded | Undone | MessageTaken] = [*loose_ends(session)]
    effects = [journal.finish_effect(event.call_id) for event in closing if isinstance(event, ToolEnded)]
    ending = ENDINGS[ended.outcome]
    reason = "" if ending is Ending.ANSWERED else ended.text
    if lapsed := ended.reason == WITHDRAWN:
        closing, reason = [*closing, *taken_back(session)], TAKEN_BACK
    more = [change for each in closing_by for change in each.changes(session, ended)]
    settled = journal.mailbox.complete(ending, reason, lapsed=lapsed)
    await journal.commit(*closing, ended, changes=[*effects, settled, *more])
    return ended


def taken_back(session: Session) -> list[Undone | MessageTaken]:
    """The events for deleted messages: undo where the run had done nothing for them, otherwise a note."""
    if not session.heard:
        return []
    return [MessageTaken(message=NOT_TO_BE_ANSWERED)] if session.rounds else [Undone(to=session.began)]


def loose_ends(session: Session) -> list[Replied | ToolEnded]:
    """The events for unfinished work at the end of a run: the partial reply, or a result for each call without one."""
    draft = "".join(session.draft)
    session.draft.clear()
    if draft:
        return [_cut_short(session, draft)]
    closing: list[Replied | ToolEnded] = []
    for call in session.open_calls:
        text = "Interrupted: the run ended before this call had a result; what it did is unknown."
        if call.id not in session.started:
            text = "Not run: the run ended before this call."
        result = ToolResult(
            call_id=call.id, name=call.name, parts=(Text(text=text, origin=Origin.RUNTIME),), is_error=True
        )
        message = Message(role=Role.TOOL, parts=(result,))
        closing.append(
            ToolEnded(turn=session.turn, call_id=call.id, tool=call.name, message=message, is_error=True, seconds=0.0)
        )
    return closing


async def give_up(
    session: Session, journal: Journal, ids: Ids, error: HermesError, closing: tuple[Closing, ...] = ()
) -> RunEnded:
    """End a run that could not start, with the reason: the mail is logged, and its sender is told."""
    if not session.running:
        session.run = ids.short()
        await journal.commit(RunStarted())
    await take_inbox(session, journal, first=True)
    ended = failed(error, session.turn)
    if isinstance(error, LimitReached):
        ended = limited(str(error), session.turn, error)
    return await end(session, journal, ended, closing)


def _cut_short(session: Session, text: str) -> Replied:
    message = Message(role=Role.ASSISTANT, parts=(Text(text=text),))
    return Replied(
        turn=session.turn + 1,
        call_id="",
        message=message,
        stop=StopReason.OTHER,
        usage=Usage(known=False),
        provider="",
        model="",
        cost=None,
        seconds=0.0,
        partial=True,
    )
