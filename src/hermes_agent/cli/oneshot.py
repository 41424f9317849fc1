"""`hermes -z PROMPT`: one question, the reply alone on standard output."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import aclosing

import msgspec

from hermes_agent.app.runtime import Runtime
from hermes_agent.app.wiring import Options, open_runtime
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.taped import tape_of
from hermes_agent.core.events import Notice, Outcome, Replied, RunEnded, Seen, ToolStarted
from hermes_agent.core.inbound import Conversation, Inbound
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.paths import current_folder, find_home
from hermes_agent.store.sessions import Session as SessionRecord

GO_ON = '`hermes -c -z ""`'
"""What lets a run that was cut short go on."""


def run(invocation: Invocation) -> int:
    """Ask, print, and return the exit code of `Exit`. With an empty prompt, take up a run that was interrupted."""
    try:
        return asyncio.run(_run(invocation))
    except asyncio.CancelledError:
        return Exit.STOPPED


async def _run(invocation: Invocation) -> int:
    home = find_home(invocation.profile).ensure()
    options = Options(model=invocation.model, attended=False, tape=tape_of(invocation))
    async with open_runtime(home, options) as runtime:
        if runtime.loaded.notice:
            tell(runtime.loaded.notice)
        interrupt = _Interrupt(runtime)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt.press)
        session, after, works = await _begin(runtime, invocation)
        if not works:
            tell("Nothing to resume: the last run of this session is complete.")
            return Exit.OK
        interrupt.watch(session)
        ended, reply = await _follow(runtime, session, after, invocation)
        return report(ended, reply, as_json=invocation.json)


class _Interrupt:
    """Ctrl-C: stops the run, or this watching of a run in another process. One that comes while the message is being
    handed over waits until it is."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._task = asyncio.current_task()
        self._session = ""
        self._pressed = False

    def press(self) -> None:
        """Stop as soon as there is something to stop; at once where it was pressed before."""
        again, self._pressed = self._pressed, True
        if self._session:
            self._stop()
        elif again and self._task is not None:
            self._task.cancel()

    def watch(self, session: str) -> None:
        """From now on an interrupt is about this session."""
        self._session = session
        if self._pressed:
            self._stop()

    def _stop(self) -> None:
        if not self._runtime.hermes.stop_now(self._session) and self._task is not None:
            self._task.cancel()


async def _begin(runtime: Runtime, invocation: Invocation) -> tuple[str, int, bool]:
    """The session, the event to follow it from, and whether there is anything to follow."""
    workspace = str(current_folder())
    conversation = Conversation(platform="cli", chat_kind="folder", chat=workspace)
    if not (runtime.taped or invocation.resume or invocation.go_on):
        runtime.route()  # Without a model no session is begun.
    record = await session_for(runtime, invocation, conversation)
    if invocation.model not in ("", record.model):
        await runtime.hermes.choose(record.id, invocation.model)
    after = await runtime.store.history.last_number(record.id)
    if not invocation.prompt:
        if await runtime.hermes.resume(record.id):
            return record.id, after, True
        if not await _was_cut_short(runtime, record.id):
            return record.id, after, False
    parts = await _parts(runtime, invocation, record)
    inbound = Inbound(
        source="cli",
        source_id=runtime.ids.short(),
        principal=runtime.owner,
        conversation=conversation,
        parts=parts,
        received=runtime.clock.now(),
        resumes=not invocation.prompt,
    )
    await runtime.hermes.submit(inbound, record.id)
    if invocation.resume or invocation.go_on:
        await runtime.hermes.resume(record.id)  # A run that a crash left open takes the message along.
    return record.id, after, True


async def _parts(runtime: Runtime, invocation: Invocation, record: SessionRecord) -> tuple[Text, ...]:
    """The message: what the person asked, or the skill that it names, after the skills that `-s` names."""
    if not invocation.prompt:
        return ()
    parts = None
    if invocation.prompt.startswith("/"):
        parts = await runtime.skills.invoked(invocation.prompt, record.workspace, record.id)
    parts = parts or (Text(text=invocation.prompt, origin=Origin.OWNER),)
    if not invocation.skills:
        return parts
    return (await runtime.skills.preloaded(invocation.skills, record.workspace, record.id), *parts)


async def _was_cut_short(runtime: Runtime, session: str) -> bool:
    """Whether the session's last run ended without an answer: stopped, failed, or at a limit."""
    entries = await runtime.store.history.entries(session)
    ends = [entry.event for entry in entries if isinstance(entry.event, RunEnded)]
    return bool(ends) and ends[-1].outcome is not Outcome.ANSWERED


async def session_for(runtime: Runtime, invocation: Invocation, conversation: Conversation) -> SessionRecord:
    """The session that the command line means: a named one, this folder's latest, or a new one."""
    if invocation.resume:
        return await runtime.store.sessions.find(invocation.resume)
    return await runtime.hermes.open_session(
        conversation, runtime.owner, workspace=conversation.chat, model=invocation.model, new=not invocation.go_on
    )


async def _follow(runtime: Runtime, session: str, after: int, invocation: Invocation) -> tuple[RunEnded, str]:
    """The end of the run, and the last words of the model in it."""
    ended, reply = None, ""
    progress = sys.stderr.isatty() and not invocation.quiet
    async with aclosing(runtime.hermes.follow(session, after)) as events:
        async for seen in events:
            ended = seen.event
            if invocation.json:
                say(line_of(seen))
            elif isinstance(ended, Replied):
                reply = ended.message.text
            elif isinstance(ended, Notice):
                tell(ended.text)
            elif isinstance(ended, ToolStarted) and progress:
                tell(f"· {ended.summary}")
    assert isinstance(ended, RunEnded)
    return ended, reply


def line_of(seen: Seen) -> str:
    """An event as one line of JSON: session, number, run, at, and the event's own fields with its `kind`."""
    plain = {"session": seen.session, "number": seen.number, "run": seen.run, "at": seen.at, "event": seen.event}
    return msgspec.json.encode(plain).decode()


def say(text: str) -> None:
    """A line on standard output, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tell(text: str) -> None:
    """A line beside the output."""
    sys.stderr.write(f"{text}\n")


def report(ended: RunEnded, reply: str, *, as_json: bool) -> int:
    """Print the reply where it belongs, also the one with which a model ends at a limit; why there is no whole one
    stands beside it, and the exit code says how the run ended."""
    if ended.outcome is Outcome.ANSWERED:
        if not as_json:
            say(ended.text)
        return Exit.OK
    if not as_json:
        rest = ended.text.removeprefix(reply).strip()
        if reply and rest != ended.text.strip():
            say(reply)
        tell(rest.replace("`/continue`", GO_ON))
        if ended.outcome is Outcome.LIMIT and "`/continue`" not in ended.text:
            tell(f"{GO_ON} goes on.")
    return Exit.of(ended)
