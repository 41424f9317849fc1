"""Tools `terminal` and `process`: shell commands in the execution place, in the foreground and background."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments, ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.host.late import Needs
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import AlreadyStarted, Command, Ended, Place, PlaceFailed, Running
from hermes_agent.tools.files.buffers import Buffers
from hermes_agent.tools.output import REWRITTEN, Caps, Covers, Hiding, caps_of, cleaned, hiding_of, shown_output
from hermes_agent.tools.schema import said
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.starting import (
    Outside,
    attached,
    decided,
    exec_name,
    lent_in,
    origin_of,
    short_id,
    started,
    told_meanwhile,
)

MOST_PATTERNS, LONGEST_PATTERN = 10, 300
LONGEST_LINE = 1000  # characters of a line that are looked at
CHUNK = 256 << 10
LINE_END = r"[\r\n]+"
# A repeated group that repeats something itself may take longer than anybody lives.
_NESTED = r"\((?:[^()\\]|\\.)*[+*}](?:[^()\\]|\\.)*\)[+*{]"


async def _start(place: Place, exec_id: str, command: Command) -> Running:
    try:
        return await place.start(exec_id, command)
    except AlreadyStarted as error:
        found = await place.attach(exec_id)
        if found is None:
            raise PlaceFailed("The command could not be started; try again.") from error
        return found


async def _kept(covers: Covers, running: Running) -> bool:
    """Mask the output until the end; whether the command may have talked to anybody."""
    await covers.keep(running)
    return origin_of(await running.poll()) is not Origin.WORKSPACE


def check_patterns(patterns: Sequence[str]) -> None:
    """Raise `BadArguments` for an invalid regular expression, or one that could backtrack endlessly."""
    if len(patterns) > MOST_PATTERNS:
        raise BadArguments(f"At most {MOST_PATTERNS} patterns can be watched for.")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadArguments(f"`{pattern}` is not a regular expression: {error}.") from error
        if len(pattern) > LONGEST_PATTERN or re.search(_NESTED, pattern):
            raise BadArguments(f"`{pattern[:80]}` may take too long.", hint="Watch for a few plain words.")


class Lookout:
    """Looks for lines in a command's output that match patterns, from where it stopped. An incomplete line counts too,
    and is checked again when it has grown."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._read = 0
        self._line = b""  # the beginning of the line that is not whole yet; empty where it was told of

    async def next_line(self, running: Running) -> str:
        """The next matching line; empty if there is none yet."""
        while new := await running.read(self._read, CHUNK):
            found = self._find(new)
            if found:
                return found
        return ""

    def _find(self, new: bytes) -> str:
        before = len(self._line)
        text = self._line + new
        start = 0
        while (end := text.find(b"\n", start)) >= 0:
            line = self._match(text[start:end])
            start = end + 1
            if line:
                self._read += start - before
                self._line = b""
                return line
        line = self._match(text[start:])
        self._line = b"" if line else text[start:][-4 * LONGEST_LINE :]
        self._read += len(new)
        return line

    def _match(self, raw: bytes) -> str:
        line = cleaned(raw.decode("utf-8", "replace"))[:LONGEST_LINE]
        return line.strip() if any(pattern.search(line) for pattern in self._patterns) else ""


EXEC = (Capability.EXEC,)
PROGRESS_SECONDS = 0.5
FASTEST, SOONEST = 2 << 30, 0.01  # bytes a second that a command may write; seconds between two looks at its output
WATCH_SECONDS = 0.2
LATEST = 2000  # bytes at the end of the output that a person is shown of while it runs
SLOW = 1.0  # seconds from which on it is worth saying how long a command took
ELSEWHERE = "One that began on another machine, or ended long ago, is not known here."
LIMIT_SPARE = 0.5  # seconds after its end here in which the place ends a command: it does where nobody is here any more
ENDED_BY_FORCE = (137, 143)
MARGIN = 600  # bytes of an answer that are not output


class ShellTools:
    """The toolset `shell`: commands of all sessions in one place, with a persistent shell for each session. `hiding`
    removes secrets from their saved output."""

    def __init__(
        self,
        *,
        place: Place,
        settings: TerminalSettings,
        caps: Caps | None = None,
        hiding: Hiding | None = None,
        folders: Callable[[str], tuple[str, ...]] = lambda _: (),
    ) -> None:
        caps = caps or Caps()
        self._place, self._folders = place, folders
        self._settings, self.outside = settings, Outside(place)
        self._caps = Caps(max_bytes=caps.max_bytes - MARGIN, max_lines=caps.max_lines - 5)
        self._covers = Covers(hiding or Hiding())
        self._polled, self._lookouts = dict[str, int](), dict[str, Lookout]()

    async def directory(self, session: str) -> str:
        """The working directory of the session's next command; empty before its first."""
        return await self._place.directory(exec_name(session))

    def exported(self, session: str) -> Mapping[str, str]:
        """The variables of the session's shell; empty before its first command, or on another machine. Blocks."""
        return self._place.exported(exec_name(session))

    @tool(effect=Effect.EXEC, needs=EXEC, reads_when="read_only", origin=Origin.WORKSPACE)
    async def terminal(  # noqa: PLR0913 - each is a word of the tool's schema
        self,
        command: str,
        context: CallContext,
        background: bool = False,
        timeout: int = 0,  # noqa: ASYNC109 - the model's word for it
        workdir: str = "",
        read_only: bool = False,
        pty: bool = False,
        watch: list[str] | None = None,
        outside: bool = False,  # noqa: ARG002 - permission reads it, and lets the call out
    ) -> Answer:
        """Run a shell command. Working directory and exported variables last from call to call.

        Args:
            background: answer at once with an id for process; for servers and long jobs
            timeout: seconds, default 180, at most 600
            workdir: for this command only
            read_only: the command changes nothing; such calls of one turn run side by side
            pty: give it a terminal, for programs that want one; with background they are steered by process(write)
            watch: regular expressions; process(wait) returns when a new line of output matches
            outside: run outside the wall; a person is asked first
        """
        check_patterns(watch or ())
        group, seconds = exec_name(context.session), self._seconds(timeout, context)
        wanted = Command(
            text=command,
            folder=context.workspace,
            folders=self._folders(context.session),
            workdir=workdir,
            shell=group,
            keeps=not (background or read_only or pty),
            background=background,
            pty=pty,
            watch=tuple(watch or ()),
            lent=lent_in(command, context.key),
            limit=0.0 if background else seconds + LIMIT_SPARE,
            outside=self.outside.may(context.key),
        )
        running = await self._begin(f"{group}/{exec_name(context.key)}", wanted, context)
        if background:
            over = spawn(_kept(self._covers, running), name=f"secrets of {running.exec_id}")
            begun = f"Started in the background as {short_id(running.exec_id)}, output in {running.output_path}"
            return replace(said(begun, Origin.WORKSPACE), over=over)
        return await self._finish(running, context, seconds)

    @tool(effect=Effect.WRITES, needs=EXEC, reads_when="action=list|poll|log|wait", origin=Origin.WORKSPACE)
    async def process(
        self,
        action: Literal["list", "poll", "log", "wait", "write", "kill"],
        context: CallContext,
        id: str = "",  # noqa: A002 - the model's word for it
        data: str = "",
        timeout: int = 60,  # noqa: ASYNC109 - as above
    ) -> Answer:
        """Look after background commands: list, poll (new output), log (whole output), wait, write (data to its input),
        kill.
        """
        group = exec_name(context.session)
        if action == "list":
            return said(await self._listed(group), Origin.TOOL)
        running = await self._find(group, id)
        if action in ("poll", "log", "wait"):
            await self._covers.catch_up(running)
        match action:
            case "write":
                await running.write(data.encode("utf-8", "replace"))
                return said(f"Sent {len(data)} characters.", Origin.WORKSPACE)
            case "kill":
                gone = await running.kill()
                state = await self._state(running) if gone else "It was killed, but something of it still runs."
                return said(state, Origin.RUNTIME)
            case "wait":
                line = await self._wait(running, self._seconds(timeout, context), context)
                await self._covers.catch_up(running)
                news = await self._news(running)
                return said(f"{news}\n[matched: {line}]" if line else news, origin_of(await running.poll()))
            case "poll":
                return said(await self._news(running), origin_of(await running.poll()))
            case "log":
                output = await shown_output(running, self._caps)
                return said(_joined(output, await self._state(running)), origin_of(await running.poll()))

    async def _begin(self, exec_id: str, command: Command, context: CallContext) -> Running:
        """Start the command, or attach to the one an earlier attempt of this call started."""
        if context.attach and (found := await attached(self._place, exec_id, context)) is not None:
            return found
        with told_meanwhile(self._place, context):
            return await started(_start(self._place, exec_id, command), self._stop, name=exec_id)

    async def _finish(self, running: Running, context: CallContext, seconds: float) -> Answer:
        try:
            with told_meanwhile(self._place, context):
                ended, reason = await self._watch(running, context, seconds)
        except asyncio.CancelledError:
            await asyncio.shield(spawn(self._stop(running), name=f"stop {running.exec_id}"))
            raise
        if ended is None:
            await running.kill()
        await self._covers.hide(running)
        output = await shown_output(running, self._caps)
        if ended is not None and 0 < running.command.limit <= ended.seconds and ended.code in ENDED_BY_FORCE:
            ended, reason = None, f"the command took more than {running.command.limit - LIMIT_SPARE:.0f} s"
        if ended is None:
            return said(_joined(output, f"[{reason} and was ended]"), Origin.TOOL, is_error=True)
        hint = self.outside.hint(ended, running, output)
        return said(_joined(output, f"{_ending(await decided(ended, context), running)}{hint}"), origin_of(ended))

    async def _stop(self, running: Running) -> None:
        await running.kill()
        await self._covers.hide(running)

    async def _watch(self, running: Running, context: CallContext, seconds: float) -> tuple[Ended | None, str]:
        """Wait for the end, with progress; None with the reason if it must be killed."""
        ended = await running.poll()
        if ended is not None:
            return ended, ""
        waiting = spawn(running.wait(), name=f"end of {running.exec_id}")
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        most = self._settings.max_output_mb << 20
        shown = size = 0
        covering: asyncio.Task[None] | None = None
        try:
            while (left := until - loop.time()) > 0:
                soon = max(SOONEST, (most - size) / FASTEST)
                done, _ = await asyncio.wait([waiting], timeout=min(left, PROGRESS_SECONDS, soon))
                if done:
                    return waiting.result(), ""
                size = await running.size()
                if size > most:
                    await _stand_still(running)
                    return None, f"the command wrote more than {self._settings.max_output_mb:,} MB"
                if size > REWRITTEN and covering is None:
                    covering = spawn(self._covers.keep(running), name=f"secrets of {running.exec_id}")
                if size != shown:
                    await self._show(running, context, size)
                    shown = size
            return None, f"the command took more than {seconds:.0f} s"
        finally:
            waiting.cancel()
            if covering is not None:
                covering.cancel()

    async def _show(self, running: Running, context: CallContext, size: int) -> None:
        """Show the latest complete line; what is incomplete could hold a secret not yet recognisable."""
        latest = (await running.read(max(0, size - LATEST), LATEST)).decode("utf-8", "replace")
        whole = "\n".join(re.split(LINE_END, latest)[size > LATEST : -1])
        line = cleaned(self._covers.settled(whole)).strip().rpartition("\n")[2]
        if line:
            context.progress(line[:200])

    def _seconds(self, asked: int, context: CallContext) -> float:
        wanted = min(asked if asked > 0 else self._settings.timeout, self._settings.max_timeout)
        left = context.seconds_left()
        return wanted if left is None else max(0.1, min(wanted, left))

    async def _wait(self, running: Running, seconds: float, context: CallContext) -> str:
        """Wait until the command ends, time is up, or a watched line appears, which is returned."""
        lookout = self._lookout(running)
        waiting = spawn(running.wait(), name=f"end of {running.exec_id}")
        until = asyncio.get_running_loop().time() + seconds
        try:
            while not (line := await lookout.next_line(running) if lookout else ""):
                left = until - asyncio.get_running_loop().time()
                if waiting.done() or left <= 0:
                    break
                await asyncio.wait([waiting], timeout=min(left, WATCH_SECONDS) if lookout else left)
        finally:
            waiting.cancel()
        if line:
            context.progress(line)
        return line

    def _lookout(self, running: Running) -> Lookout | None:
        if not running.command.watch:
            return None
        return self._lookouts.setdefault(running.exec_id, Lookout(running.command.watch))

    async def fed(self, session: str, arguments: Mapping[str, object]) -> Command | None:
        """The command that this call of `process` types into; None for other calls."""
        if arguments.get("action") != "write" or not isinstance(arguments.get("data"), str):
            return None
        try:
            return (await self._find(exec_name(session), str(arguments.get("id", "")))).command
        except ToolError:
            return None  # the call says so itself

    async def _find(self, group: str, short: str) -> Running:
        ids = await self._place.list(group)
        exec_id = next((found for found in ids if short_id(found) == short), "")
        if running := await self._place.attach(exec_id) if exec_id else None:
            return running
        hint = f"Here there are: {', '.join(map(short_id, ids)) or 'none'}. {ELSEWHERE}"
        raise ToolError(f"There is no background command `{short}` here.", hint=hint)

    async def _listed(self, group: str) -> str:
        rows = []
        for exec_id in await self._place.list(group):
            running = await self._place.attach(exec_id)
            if running is not None:
                line = " ".join(running.command.text.split())[:100]
                rows.append(f"{short_id(exec_id)} {await self._state(running)} {line}")
        return "\n".join(rows) or "No background commands here."

    async def _news(self, running: Running) -> str:
        """The output since the last poll."""
        size = await running.size()
        start = min(self._polled.get(running.exec_id, 0), size)
        skipped = max(0, size - start - self._caps.max_bytes)
        raw = await running.read(start + skipped, self._caps.max_bytes)
        self._polled[running.exec_id] = start + skipped + len(raw)
        note = f"[{skipped:,} bytes left out, the whole is in {running.output_path}]\n" if skipped else ""
        return _joined(f"{note}{cleaned(raw.decode('utf-8', 'replace'))}", await self._state(running))

    async def _state(self, running: Running) -> str:
        ended = await running.poll()
        return "[running]" if ended is None else _ending(ended, running)


async def _stand_still(running: Running) -> None:
    """Suspend a command while it is being killed, so that it writes no more."""
    with suppress(PlaceFailed):
        await running.signal(signal.SIGSTOP)


def _ending(ended: Ended, running: Running) -> str:
    code = "it ended unseen, exit code unknown" if ended.code is None else f"exit {ended.code}"
    took = f", {ended.seconds:.1f} s" if ended.seconds >= SLOW else ""
    left = f"; processes it started still run, see process(kill, {short_id(running.exec_id)})" if ended.children else ""
    return "\n".join((f"[{code}{took}{left}]", *(f"[{note}]" for note in ended.notes)))


def _joined(output: str, last: str) -> str:
    return f"{output.rstrip()}\n{last}" if output.strip() else last


def shell_tools(needs: Needs) -> ShellTools:
    """Factory of the toolset `shell`."""
    place, settings = needs.get(Place), needs.get(TerminalSettings)
    folders = needs.get(Buffers).folders
    return ShellTools(place=place, settings=settings, caps=caps_of(needs), hiding=hiding_of(needs), folders=folders)
