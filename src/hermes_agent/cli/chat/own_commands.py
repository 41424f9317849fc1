"""Slash commands that only the terminal chat has (/keys, /output, /copy, /export, /doctor), and `!command`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes_agent.cli.chat.calls import Call
from hermes_agent.cli.chat.chat_session import HERE, ChatSession
from hermes_agent.cli.chat.text import one_line
from hermes_agent.cli.chat.transcript import Transcript
from hermes_agent.cli.output import table
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import ToolEnded
from hermes_agent.core.messages import Message, Origin, Role, Text, ToolResult
from hermes_agent.host.late import late
from hermes_agent.host.paths import environment, reason, write_private
from hermes_agent.host.process import CapturedProcess, open_piped

OWN = tuple(f"/{each.name}" for each in HERE if each.name != "quit")
FORMATS = {".md": "as_markdown", ".html": "as_html", ".jsonl": "as_jsonl"}
TRANSCRIPT = "hermes_agent.cli.transcript"
SURFACE = "hermes_agent.cli.surface:Surface"
EXAMINE = "hermes_agent.cli.commands.doctor:examine"
OWN_CALL = "!"
"""The id of the person's own command among the calls that are shown."""
MOST_RAN = 10
"""Own commands of which the model is told at once."""
KEYS = """\
Enter              send; while a run is under way, the model reads it at its next turn
Alt+Enter, Ctrl-J  new line (also a backslash at the end of a line)
/queue WORDS       read when the run is over
Escape, Ctrl-C     stop the run; what was queued comes back into the input
Ctrl-C             when nothing runs: clear the input, then leave
Up                 with an empty input: take back what was queued, to edit it
Ctrl-D             leave
Tab                take the marked entry of a list; a message takes along the files that it names with @
!command           run a command of your own; the model reads its output with your next message
Ctrl-X Ctrl-E      write in $EDITOR (also Ctrl-G)
Ctrl-V             attach the picture in the clipboard
Up, Down, Ctrl-R   what was typed before
Ctrl-O             the folded output of the latest call whole; again: of the one before
Ctrl-T             thoughts whole or in short"""


MOST_KEPT = 200_000
"""Characters of the output that are kept."""
MOST_TOLD = 20_000
"""Characters of it that the model gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """An ended command of the person: what it wrote, its exit code, and whether the person stopped it."""

    command: str
    output: str
    code: int
    stopped: bool = False

    @property
    def end(self) -> str:
        """How it ended, as a tool's result says it."""
        return f"[exit {self.code}{', stopped' if self.stopped else ''}]"

    @property
    def text(self) -> str:
        """The output as a tool's result has it."""
        return "\n".join(filter(None, (self.output.rstrip("\n"), self.end)))

    def part(self, redact: Callable[[str], str]) -> Text:
        """What the model is told with the next message."""
        output = redact(self.output)
        if len(output) > MOST_TOLD:
            half = MOST_TOLD // 2
            output = f"{output[:half]}\n[... {len(output) - MOST_TOLD:,} characters are left out ...]\n{output[-half:]}"
        return Text(text=f"! {self.command} {self.end}:\n{output.rstrip()}\n\n", origin=Origin.TOOL)


class OwnCommand:
    """One command of the person: started in a folder with their shell and environment, without a wall and without
    input."""

    def __init__(self, command: str) -> None:
        self.command = command
        self._running: CapturedProcess | None = None
        self._stopped = False

    async def run(self, folder: str, environment: Mapping[str, str], show: Callable[[str], None]) -> Ran:
        """Run it to its end; `show` gets each line. Raises `OSError` if it cannot be started."""
        shell = environment.get("SHELL") or "/bin/sh"
        argv = [shell, "-c", f"exec 2>&1\n{self.command}"]
        self._running = await open_piped(argv, env=environment, data=None, cwd=folder)
        kept: list[str] = []
        size = 0
        try:
            while line := await self._next():
                show(line)
                size += len(line)
                kept.append(line)
                while size > MOST_KEPT and len(kept) > 1:
                    size -= len(kept.pop(0))
            return Ran(
                command=self.command, output="".join(kept), code=await self._running.code(), stopped=self._stopped
            )
        finally:
            await self._running.close()

    async def stop(self) -> None:
        """End it with all that it started."""
        self._stopped = True
        if self._running is not None:
            await self._running.close()

    async def _next(self) -> str:
        assert self._running is not None
        try:
            return (await self._running.line()).decode("utf-8", "replace")
        except ValueError:  # Longer than the reader holds.
            return "[a very long line]\n"


class OwnCommands:
    """Performs what only a terminal has. `copy` puts a text into the clipboard, False if it cannot; `changed` is called
    when something is shown."""

    def __init__(self, session: ChatSession, transcript: Transcript, changed: Callable[[], None]) -> None:
        self.copy: Callable[[str], bool] = lambda _: False
        self._session, self._transcript, self._changed = session, transcript, changed
        self._running: OwnCommand | None = None
        self._ran: list[Text] = []

    @property
    def is_running(self) -> bool:
        """Whether a command of the person runs."""
        return self._running is not None

    async def perform(self, name: str, rest: str) -> None:
        """Perform a slash command of the terminal. Raises `HermesError`."""
        match name:
            case "/keys":
                self._transcript.answer(KEYS)
            case "/output":
                self._transcript.unfold()
            case "/export":
                self._transcript.answer(await self._export(rest.strip()))
            case "/doctor":
                self._transcript.answer(await self._doctor())
            case _:
                self._transcript.remark(self._copied())

    async def run(self, command: str) -> None:
        """Run the person's own command to its end; the model is told with the next message. Raises `HermesError`."""
        self._running = running = OwnCommand(command)
        began = self._session.runtime.clock.monotonic()
        shown = Call(tool="!", summary=f"! {command}", effect=Effect.EXEC, began=began)
        self._transcript.calls[OWN_CALL] = shown
        self._changed()

        def show(line: str) -> None:
            shown.progress = one_line(line)

        try:
            ran = await running.run(self._session.folder, environment(), show)
        except OSError as error:
            del self._transcript.calls[OWN_CALL]
            raise HermesError(f"The command could not be started ({reason(error)}).") from error
        finally:
            self._running = None
        self._ran = [*self._ran, ran.part(self._session.runtime.secrets.redact)][-MOST_RAN:]
        part = ToolResult(call_id=OWN_CALL, name="!", parts=(Text(text=ran.text),))
        message = Message(role=Role.TOOL, parts=(part,))
        seconds = self._session.runtime.clock.monotonic() - began
        self._transcript.see(
            ToolEnded(turn=0, call_id=OWN_CALL, tool="!", message=message, is_error=False, seconds=seconds)
        )

    async def stop(self) -> None:
        """Stop the person's own command."""
        if self._running is not None:
            await self._running.stop()

    def outputs(self) -> list[Text]:
        """The output of the person's commands since the last message, as parts of the next one."""
        ran, self._ran = self._ran, []
        return ran

    def _copied(self) -> str:
        text = self._transcript.last_answer
        if not text:
            return "There is no reply to copy yet."
        if self.copy(text):
            return f"Copied {len(text):,} characters, if this terminal lets programs copy (OSC 52)."
        return "This terminal cannot copy it. `/export FILE.md` writes a file."

    async def _export(self, name: str) -> str:
        """Write the conversation into a file of the working folder; what was done, as a sentence."""
        session = self._session
        if session.record is None:
            raise HermesError("Nothing was said yet.")
        path = await asyncio.to_thread(_new_file, session.folder, name or f"{session.record.id}.md")
        text: str = late(f"{TRANSCRIPT}:{FORMATS[path.suffix]}")(session.record, await session.entries())
        try:
            await asyncio.to_thread(write_private, path, text.encode())
        except OSError as error:
            raise HermesError(f"{path} cannot be written ({reason(error)}).") from error
        return f"Written: {path}"

    async def _doctor(self) -> str:
        """What `hermes doctor --offline` finds."""
        checks = await late(EXAMINE)(late(SURFACE)(invocation=self._session.invocation), offline=True)
        lines = [table([(each.state.value, each.name, each.found) for each in checks])]
        lines += [f"{each.name}: {each.todo}" for each in checks if each.todo]
        return "\n".join([*lines, "`hermes doctor` also asks the model, `hermes doctor --security` tries the wall."])


def _new_file(folder: str, name: str) -> Path:
    """The file of that name that is to be written. Blocks."""
    path = Path(folder, Path(name).expanduser())
    if path.suffix not in FORMATS:
        raise HermesError(f"Name a file that ends in {', '.join(FORMATS)}: `/export notes.md`.")
    if path.exists():
        raise HermesError(f"{path} exists. Name another file.")
    return path
