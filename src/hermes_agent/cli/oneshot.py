"""One-shot mode `hermes -z PROMPT`: runs one question; standard output gets the reply (with `--json` the events)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import msgspec

from hermes_agent.app.intake import Part, Taken, named, total
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.background import awaits_reports, hand_over, resume_agents
from hermes_agent.app.operations.questions import answer_question
from hermes_agent.app.operations.runs import entitle_session
from hermes_agent.app.operations.sessions import (
    SessionRecord,
    find_session,
    last_number,
    run_cost,
    was_cut_short,
)
from hermes_agent.app.system import System
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.options import Invocation, recording_of
from hermes_agent.cli.output import remark
from hermes_agent.cli.result import Result, answer_of, failed_with
from hermes_agent.core.chat import Conversation, Inbound, Standing
from hermes_agent.core.events import Event, Notice, Outcome, RunEnded, Seen, ToolEnded, ToolStarted
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.quick_replies import reply_in, with_keys
from hermes_agent.core.shown import plural
from hermes_agent.host.loops import asked_to_end, heeding
from hermes_agent.host.paths import current_folder, environment, find_home
from hermes_agent.host.tasks import spawn

GO_ON = '`hermes -c -z ""`'
"""What lets a run that was cut short go on."""
LEFT = "{left} left to the server of this home. `hermes -r {session}` shows what comes of it."
PRINTED = "Your reply is printed as it is, perhaps for another program: plain text, and nothing but what was asked for."
NOT_TRUSTED = (
    "{root} is not trusted: its instructions are material here, and what is learned waits. "
    "`hermes trust add {root}` trusts it, `hermes trust decline {root}` ends this line."
)
LONGEST_LINE = 4096
HANDING_OVER = 1.0
"""Seconds in which the message is handed over where nothing keeps it waiting."""
LOOK_SECONDS, LAST_LOOK = 1.0, 0.1
"""Seconds between two looks whether agents in the background still work, and for the events of the last run to come."""
STOP_SECONDS = 3.0
"""Seconds after which a stopped run is left to the log, whatever keeps it; a stop takes two at most."""


def run(invocation: Invocation) -> int:
    """Ask, print the reply, and return an `Exit` code. With an empty prompt, resume an interrupted run."""
    try:
        return asyncio.run(_run(invocation))
    except asyncio.CancelledError:
        return Exit.STOPPED


async def _run(invocation: Invocation) -> int:
    home = find_home(invocation.profile).ensure()
    options = Options(
        model=invocation.model,
        attended=False,
        reading=PRINTED,
        tape=recording_of(invocation),
        strict_input=invocation.strict_input,
        allow=invocation.allowed,
    )
    async with open_system(home, options) as runtime:
        if runtime.notice:
            remark(runtime.notice)
        interrupt = _Interrupt(runtime)
        with heeding({signal.SIGINT: interrupt.press}), asked_to_end(interrupt.press):
            session, after, works = await _begin(runtime, invocation)
            if not works:
                remark("Nothing to resume: the last run of this session is complete.")
                return Exit.OK
            interrupt.watch(session)
            silent = invocation.json or invocation.result
            ended, result, number = await _follow(runtime, session, after, invocation)
            code = report(ended, result, silent=silent)
            waits = result.delegated or (invocation.go_on and await awaits_reports(runtime, session))
            if waits and (left := await hand_over(runtime, session)):
                remark(LEFT.format(left=plural(left, "agent"), session=session))
                waits = False
            while waits and (more := await _next_run(runtime, session, number, invocation)):
                ended, result, number = more[0], result.followed_by(more[1]), more[2]
                code = report(ended, result, silent=silent)
            if not after:
                piped = invocation.piped if isinstance(invocation.piped, str) else ""
                await entitle_session(Access(system=runtime, who=runtime.owner), session, invocation.prompt or piped)
            if invocation.fail_on_refusal and result.refusals and code == Exit.OK:
                code = Exit.REFUSED
            if invocation.result:
                say(await _as_json(runtime, session, ended, result, code))
            return code


class _Interrupt:
    """Signal handling (SIGINT, SIGTERM, SIGHUP): stops the run, or stops following one in another process. During
    submission of the message it waits."""

    def __init__(self, runtime: System) -> None:
        self._runtime = runtime
        self._task = asyncio.current_task()
        self._session = ""
        self._pressed = False

    def press(self) -> None:
        """Stop as soon as possible; a second signal stops at once."""
        again, self._pressed = self._pressed, True
        if self._session:
            self._stop()
        elif again:
            self._leave()
        else:
            asyncio.get_running_loop().call_later(HANDING_OVER, self._leave)

    def _leave(self) -> None:
        """Cancel a submission that is stuck."""
        if not self._session and self._task is not None:
            self._task.cancel()

    def watch(self, session: str) -> None:
        """Direct later interrupts to this session."""
        self._session = session
        if self._pressed:
            self._stop()

    def _stop(self) -> None:
        if self._task is None:
            return
        if self._runtime.hermes.stop_now(self._session):
            asyncio.get_running_loop().call_later(STOP_SECONDS, self._task.cancel)
        else:
            self._task.cancel()


async def _begin(runtime: System, invocation: Invocation) -> tuple[str, int, bool]:
    """Submit the message. Returns the session, the event number to follow from, and whether there is anything to
    follow."""
    workspace = str(current_folder())
    whose = "" if runtime.owner.standing is Standing.OWNER else runtime.owner.key
    conversation = Conversation(platform="cli", chat_kind="folder", chat=workspace, participant=whose)
    if not (runtime.has_cassette or invocation.resume or invocation.go_on):
        runtime.route()  # Without a model no session is begun.
    given = await _given(runtime, invocation)
    if not runtime.has_cassette and (said := await runtime.no_wall(only_first=True)):
        remark(said)
    record = await session_for(runtime, invocation, conversation)
    if invocation.model not in ("", record.model):
        await runtime.hermes.choose(record.id, invocation.model)
    if not runtime.has_cassette and runtime.owner.standing is Standing.OWNER:
        await _ask_about(runtime, record.workspace)
    after = await last_number(runtime, record.id)
    asks = bool(invocation.prompt or given.parts)
    left = (invocation.resume or invocation.go_on) and await resume_agents(runtime, record.id)
    if not asks:
        if await runtime.hermes.resume(record.id) or left:
            return record.id, after, True
        if not await was_cut_short(runtime, record.id):
            return record.id, after, False
    parts = await _parts(runtime, invocation, record)
    inbound = Inbound(
        source="cli",
        source_id=runtime.ids.short(),
        principal=runtime.owner,
        conversation=conversation,
        parts=(*apart(parts), *given.parts) if given.parts else parts,
        received=runtime.clock.now(),
        resumes=not asks,
        notice=given.notice,
    )
    await runtime.hermes.submit(inbound, record.id)
    if invocation.resume or invocation.go_on:
        await runtime.hermes.resume(record.id)  # A run that a crash left open takes the message along.
    return record.id, after, True


async def _ask_about(runtime: System, folder: str) -> None:
    """Ask at a terminal whether the folder is trusted, before the run; elsewhere say that it is not."""
    news = await asyncio.to_thread(runtime.folders.question, folder)
    if news is None or not (news.files or is_terminal()):
        return
    if not is_terminal():
        remark(NOT_TRUSTED.format(root=news.root))
        return
    remark(with_keys(news.notice).replace("`/trust`", "`hermes trust show`"))
    reply = reply_in(news.id, await _line_typed(), brief=True)
    access = Access(system=runtime, who=runtime.owner, folder=folder)
    remark(await answer_question(access, news.id, reply.word) if reply else NOT_TRUSTED.format(root=news.root))


def is_terminal() -> bool:
    """Whether a person can be asked: standard output may be for a program."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def _line_typed() -> str:
    """The next line at the terminal. A signal cancels it, as no thread waits for it."""
    loop, handle = asyncio.get_running_loop(), sys.stdin.fileno()
    typed = asyncio.Event()
    loop.add_reader(handle, typed.set)
    try:
        await typed.wait()
        return os.read(handle, LONGEST_LINE).decode("utf-8", "replace")
    finally:
        loop.remove_reader(handle)


async def _given(runtime: System, invocation: Invocation) -> Taken:
    """Parts from standard input and `--file`, whoever wrote them: the prompt alone is the person's. Raises
    `HermesError` for an unreadable file, and `InputTooLarge` before a session is created."""
    intake, window = runtime.intake, await runtime.intake.window(invocation.model)
    files = [(await asyncio.to_thread(named, Path(path)), path) for path in invocation.files]
    parts: list[Part] = []
    if isinstance(piped := invocation.piped, str):
        parts += [Text(text=piped, origin=Origin.FILE)] if piped else []
    else:
        files.insert(0, (piped, ""))
    taken = [await asyncio.to_thread(intake.of_file, file, Origin.FILE, window, name=name) for file, name in files]
    parts += [part for each in taken for part in each.parts]
    intake.check(total((Text(text=invocation.prompt), *parts)), window)
    return Taken(parts=tuple(parts), notice=" ".join(each.notice for each in taken if each.notice))


async def _parts(runtime: System, invocation: Invocation, record: SessionRecord) -> tuple[Text, ...]:
    """The prompt, or the skill that it invokes, after the skills of `-s`."""
    if not invocation.prompt:
        return ()
    parts, where = None, (record.workspace, record.id, record.conversation)
    if invocation.prompt.startswith("/"):
        parts = await runtime.skills.invoked(invocation.prompt, *where, runtime.owner)
    parts = parts or (Text(text=invocation.prompt, origin=Origin(runtime.owner.standing.value)),)
    if not invocation.skills:
        return parts
    return (await runtime.skills.preloaded(invocation.skills, *where), *parts)


async def session_for(runtime: System, invocation: Invocation, conversation: Conversation) -> SessionRecord:
    """The session to use: a named one, the folder's latest, or a new one."""
    if invocation.resume:
        return await find_session(Access(system=runtime, who=runtime.owner), invocation.resume)
    return await runtime.hermes.open_session(
        conversation, runtime.owner, workspace=conversation.chat, model=invocation.model, new=not invocation.go_on
    )


async def _next_run(
    runtime: System, session: str, number: int, invocation: Invocation
) -> tuple[RunEnded, Result, int] | None:
    """Follow the run that answers the next report of a background agent; None once no agent is left."""
    following = spawn(_follow(runtime, session, number, invocation), name=f"reports to {session}")
    try:
        waits = True
        while waits:
            waits = await awaits_reports(runtime, session)
            if (await asyncio.wait((following,), timeout=LOOK_SECONDS if waits else LAST_LOOK))[0]:
                return following.result()
    finally:
        following.cancel()
    return None


async def _follow(runtime: System, session: str, after: int, invocation: Invocation) -> tuple[RunEnded, Result, int]:
    """Follow the run to its end, with progress on standard error; also the number of its last event."""
    ended, result, number = None, Result(), after
    progress = sys.stderr.isatty() and not invocation.quiet
    async with aclosing(runtime.hermes.follow(session, after)) as events:
        async for seen in events:
            ended, number = seen.event, seen.number
            refusal = result.see(ended)
            if invocation.json:
                say(line_of(seen))
            elif refusal is not None:
                remark(str(refusal))
            elif isinstance(ended, Notice):
                remark(ended.text)
            elif progress and (line := progress_line(ended)):
                remark(line)
    assert isinstance(ended, RunEnded)
    return ended, result, number


def progress_line(event: Event) -> str:
    """An event as a progress line: a started call or a failed command; else empty."""
    match event:
        case ToolStarted(summary=summary):
            return f"· {summary}"
        case ToolEnded(tool=tool, is_error=False) if failed := failed_with(answer_of(event)):
            words = f"✗ {tool}: {failed}"
            return words if environment().get("NO_COLOR") else f"\x1b[31m{words}\x1b[0m"
        case _:
            return ""


async def _as_json(runtime: System, session: str, ended: RunEnded, result: Result, code: int) -> str:
    """The object of `--json=result`. The cost is in US dollars, null if a price is unknown."""
    view = await runtime.hermes.view(session)
    cost = await run_cost(runtime, session, view.run)
    whole, problem = result.parts(ended)
    return result.as_json(
        whole or result.reply,
        outcome=ended.outcome,
        problem=problem.replace("`/continue`", GO_ON),
        cost=cost,
        session=session,
        exit_code=code,
    )


def apart(words: tuple[Text, ...]) -> tuple[Text, ...]:
    """Message parts with a blank line after them."""
    return (*words[:-1], replace(words[-1], text=f"{words[-1].text}\n\n")) if words else ()


def line_of(seen: Seen) -> str:
    """An event as one JSON line: session, number, run, at, and the event's fields with its `kind`."""
    plain = {"session": seen.session, "number": seen.number, "run": seen.run, "at": seen.at, "event": seen.event}
    return msgspec.json.encode(plain).decode()


def say(text: str) -> None:
    """Print a line and flush."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def report(ended: RunEnded, result: Result, *, silent: bool) -> int:
    """Print the reply to standard output (also a partial one at a limit) and problems to standard error. Returns the
    exit code."""
    whole, problem = result.parts(ended)
    answered = ended.outcome is Outcome.ANSWERED
    if not silent and (whole or answered):
        say(whole)
    if not (silent or answered):
        remark(problem.replace("`/continue`", GO_ON))
        if ended.outcome is Outcome.LIMIT and "`/continue`" not in problem:
            remark(f"{GO_ON} resumes it.")
    return Exit.of(ended)
