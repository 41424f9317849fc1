"""Tool `execute_code`: runs Python in the execution place that can call tools over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.host.late import Needs
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import Command, Place, PlaceFailed, Running
from hermes_agent.tools.files.buffers import Buffers
from hermes_agent.tools.output import Caps, Covers, Hiding, caps_of, cleaned, hiding_of
from hermes_agent.tools.schema import said
from hermes_agent.tools.settings import CodeSettings
from hermes_agent.tools.starting import decided, exec_name, origin_of, started, told_meanwhile

CLIENT = '''\
def _begin():
    import _thread, json, sys, types

    out, answers, mark, turn = sys.stdout, sys.stdin.buffer, @MARK@, _thread.allocate_lock()

    class ToolFailed(Exception):
        """A tool's answer that is an error."""

    def call(name, /, **arguments):
        with turn:
            failed, answer = json.loads(asked(json.dumps([name, arguments])))
        if failed:
            raise ToolFailed(answer)
        return answer

    def asked(call):
        out.flush()
        out.write("\\n" + mark + call + "\\n")
        out.flush()
        text = b""
        while True:
            line = answers.readline()
            if not line:
                raise SystemExit("Nobody answers the tools any more.")
            text += line[1:-1]
            if line[:1] != b"+":
                return text
            out.write("\\n" + mark + "\\n")
            out.flush()

    module = types.ModuleType("tools")
    module.call, module.ToolFailed = call, ToolFailed
    module.__getattr__ = lambda name: lambda **arguments: call(name, **arguments)
    sys.modules["tools"] = module
    sys.stdin = open("/dev/null")
    return {"__name__": "__main__", "tools": module}


exec(compile(@CODE@, "<code>", "exec"), _begin())
'''


def program(code: str, mark: str) -> str:
    """The whole program to run. `mark` prefixes each line that requests a tool call."""
    filled = {"@MARK@": json.dumps(mark), "@CODE@": json.dumps(code)}
    text = CLIENT
    for name, value in filled.items():
        text = text.replace(name, value)
    return text


def command(program_text: str, mark: str) -> str:
    """The shell command that runs it; stdin stays free for tool results."""
    return f"exec python3 -u /dev/fd/3 3<<'{mark}'\n{program_text}\n{mark}\n"


GLANCE, LONGEST_GLANCE = 0.002, 0.2
CHUNK = 1 << 18
# What a pipe takes at once while the program waits at its other end.
PIECE = 60_000
SEND_TRIES, SEND_SECONDS = 50, 0.02


class OverLimit(ToolError):
    """A program run by `execute_code` exceeded its limit of tool calls or output."""


@dataclass(slots=True, kw_only=True)
class Conversation:
    """Tool-call protocol with a program that `execute_code` runs: reads its requests and writes back results. `call`
    runs a tool; `printed` collects other output. Limits: `most_calls` calls, `most_bytes` of output."""

    running: Running
    mark: bytes
    call: Callable[[str, Mapping[str, Any]], Awaitable[Answer]]
    most_calls: int
    most_bytes: int
    calls: int = 0
    printed: bytearray = field(default_factory=bytearray)
    _seen: int = 0
    _rest: bytes = b""
    _pieces: list[bytes] = field(default_factory=list)

    async def go_on(self) -> None:
        """Serve requests until the program ends. Raises what stopped it early."""
        pause = GLANCE
        while True:
            ended = await self.running.poll()
            asked = await self._listen()
            if ended is not None and not asked:
                self.printed += self._rest
                return
            pause = GLANCE if asked else min(pause * 1.3, LONGEST_GLANCE)
            if not asked:
                await asyncio.sleep(pause)

    async def _listen(self) -> bool:
        """Read new output and answer requests. Returns whether there was any."""
        new = await self.running.read(self._seen, CHUNK)
        self._seen += len(new)
        self._rest += new
        while (end := self._rest.find(b"\n")) >= 0:
            line, self._rest = self._rest[:end], self._rest[end + 1 :]
            if line.startswith(self.mark):
                # The newline before the mark is the mark's, not the program's.
                if self.printed.endswith(b"\n"):
                    del self.printed[-1:]
                await self._answer(line[len(self.mark) :])
            else:
                self.printed += line + b"\n"
        if len(self.printed) + len(self._rest) > self.most_bytes:
            raise OverLimit(f"The code printed more than {self.most_bytes:,} bytes and was ended.")
        return bool(new)

    async def _answer(self, asked: bytes) -> None:
        if asked:
            self._pieces = _pieces(await self._called(asked))
        if self._pieces:
            await self._send(self._pieces.pop(0))

    async def _called(self, asked: bytes) -> bytes:
        self.calls += 1
        if self.calls > self.most_calls:
            raise OverLimit(f"The code called more than {self.most_calls} tools and was ended.")
        try:
            name, arguments = msgspec.json.decode(asked, type=tuple[str, dict[str, Any]])
        except msgspec.DecodeError:
            return _encoded("The call could not be read.", failed=True)
        answer = await self.call(name, arguments)
        return _encoded(_words(answer), failed=answer.is_error)

    async def _send(self, piece: bytes) -> None:
        for _ in range(SEND_TRIES):
            try:
                await self.running.write(piece)
            except PlaceFailed:
                if await self.running.poll() is not None:
                    return
                await asyncio.sleep(SEND_SECONDS)
                continue
            return


def _words(answer: Answer) -> str:
    return "".join(part.text if isinstance(part, Text) else f"[{part.kind}]" for part in answer.parts)


def _encoded(text: str, *, failed: bool) -> bytes:
    return json.dumps([failed, text], ensure_ascii=False).encode("utf-8", "replace")


def _pieces(content: bytes) -> list[bytes]:
    cut = [content[start : start + PIECE] for start in range(0, len(content), PIECE)]
    return [*(b"+" + piece + b"\n" for piece in cut[:-1]), b"-" + cut[-1] + b"\n"]


SPARE_SECONDS = 5  # so much later than it is ended here the place ends it, where nobody is here any more


class CodeTools:
    """The toolset `code` (`execute_code`): runs Python in `place`. `hiding` removes secrets from saved output."""

    def __init__(
        self,
        *,
        place: Place,
        settings: CodeSettings,
        caps: Caps | None = None,
        hiding: Hiding | None = None,
        folders: Callable[[str], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self._place, self._folders = place, folders
        self._settings = settings
        self._caps = caps or Caps()
        self._covers = Covers(hiding or Hiding())

    @tool(effect=Effect.WRITES, needs=(Capability.EXEC,), origin=Origin.WORKSPACE)
    async def execute_code(self, code: str, context: CallContext, timeout: int = 0) -> Answer:  # noqa: ASYNC109 - the model's word for it
        """Run Python that calls tools, for loops and for filtering large results: only what it prints comes back.

        `tools.read_file(path=...)` and the like return text; one that fails raises `tools.ToolFailed`.

        Args:
            timeout: seconds, default 300
        """
        seconds = self._seconds(timeout, context)
        mark = f"tool-{os.urandom(12).hex()} "
        text = command(program(code, mark), mark.strip())
        wanted = Command(
            text=text,
            folder=context.workspace,
            folders=self._folders(context.session),
            background=True,
            limit=seconds + SPARE_SECONDS,
        )
        exec_id = f"{exec_name(context.session)}/{exec_name(context.key)}"
        with told_meanwhile(self._place, context):
            running = await started(self._place.start(exec_id, wanted), self._stop, name=exec_id)
        talk = Conversation(
            running=running,
            mark=mark.encode(),
            call=context.use,
            most_calls=self._settings.max_calls,
            most_bytes=min(self._settings.max_output, self._caps.max_bytes),
        )
        note = await self._carried_on(talk, running, seconds)
        await self._covers.hide(running)
        return await self._answer(talk, running, note, context)

    async def _carried_on(self, talk: Conversation, running: Running, seconds: float) -> str:
        """Run the program to its end. Returns why it was stopped, or an empty text."""
        try:
            async with asyncio.timeout(seconds):
                await talk.go_on()
        except TimeoutError:
            note = f"The code took more than {seconds:.0f} s and was ended."
        except OverLimit as limit:
            note = str(limit)
        except BaseException:
            await asyncio.shield(spawn(self._stop(running), name=f"stop {running.exec_id}"))
            raise
        else:
            return ""
        await running.kill()
        return note

    async def _stop(self, running: Running) -> None:
        await running.kill()
        await self._covers.hide(running)

    async def _answer(self, talk: Conversation, running: Running, note: str, context: CallContext) -> Answer:
        printed = cleaned(bytes(talk.printed[: self._caps.max_bytes]).decode("utf-8", "replace")).strip("\n")
        ended = await running.poll()
        code = ended.code if ended is not None else None
        last = f"[{note}]" if note else f"[exit {code}]" if code else ""
        notes = [f"[{each}]" for each in (await decided(ended, context)).notes] if ended is not None else []
        words = "\n".join(filter(None, (printed, last, *notes))) or "[nothing was printed]"
        return said(words, origin_of(ended), is_error=bool(last))

    def _seconds(self, asked: int, context: CallContext) -> float:
        wanted = min(asked if asked > 0 else self._settings.timeout, self._settings.timeout)
        left = context.seconds_left()
        return wanted if left is None else max(0.1, min(wanted, left))


def code_tools(needs: Needs) -> CodeTools:
    """Factory of the toolset `code`."""
    place, settings = needs.get(Place), needs.get(CodeSettings)
    folders = needs.get(Buffers).folders
    return CodeTools(place=place, settings=settings, caps=caps_of(needs), hiding=hiding_of(needs), folders=folders)
