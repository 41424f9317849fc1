"""Commands that the person runs from the chat (`!command`), and what the model is told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.process import CapturedProcess, open_piped

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
