"""Runs `hermes` as a child process and reads its `--json` events."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Event, Seen
from hermes_agent.core.records import revive
from hermes_agent.host.paths import Home
from hermes_agent.host.process import Child, start_detached

SOURCE = str(Path(__file__).resolve().parents[3])
LAUNCH = "import sys; sys.argv[0] = 'hermes'; sys.path.insert(0, {source!r}); {run}"
RUN = "from hermes_agent.cli.main import main; sys.exit(main())"
LONGEST_LINE = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A line that the child process of the demo wrote to standard error; it is no event."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A `hermes` child process of the demo, with its stream of events and remarks, which ends with the process."""

    child: Child
    lines: AsyncGenerator[Seen | Remark, None]

    def kill(self) -> None:
        """Kill with SIGKILL, without any chance to clean up."""
        self.child.signal(signal.SIGKILL)


@asynccontextmanager
async def hermes(*arguments: str, home: Home, folder: Path, variables: Mapping[str, str]) -> AsyncIterator[Watched]:
    """Context manager: run `hermes ARGUMENTS` in a folder with a home; the process ends with the block. Raises
    `OSError`."""
    argv = [sys.executable, "-P", "-c", LAUNCH.format(source=SOURCE, run=RUN), *arguments]
    environment = {name: value for name, value in variables.items() if not name.startswith("HERMES_")}
    environment["HERMES_HOME"] = str(home.root)
    reading, writing = os.pipe()
    try:
        child = await asyncio.to_thread(start_detached, argv, cwd=str(folder), env=environment, stdin=None, out=writing)
    finally:
        os.close(writing)
    stream = asyncio.StreamReader(limit=LONGEST_LINE)
    with os.fdopen(reading, "rb") as pipe:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), pipe
        )
        try:
            yield Watched(child=child, lines=_lines(stream))
        finally:
            transport.close()
            if child.is_alive:
                child.signal(signal.SIGKILL)
            await child.exited()


async def _lines(stream: asyncio.StreamReader) -> AsyncGenerator[Seen | Remark, None]:
    while line := await stream.readline():
        plain = _event(line)
        if plain is None:
            yield Remark(text=line.decode("utf-8", "replace").rstrip())
        else:
            yield plain


def _event(line: bytes) -> Seen | None:
    """Parse an event line; None for other or truncated lines."""
    try:
        plain: dict[str, Any] = json.loads(line)
        event = revive(Event, plain["event"])
        return Seen(session=plain["session"], number=plain["number"], run=plain["run"], at=plain["at"], event=event)
    except (ValueError, TypeError, KeyError):
        return None
