"""Starting commands so that a stop ends them, attaching to earlier ones, and confirming remote deletions."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hermes_agent.core.errors import OutcomeUnknown, Refused
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import CallContext, Question
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import Ended, Place, PlaceFailed, Running
from hermes_agent.sandbox.walls import Walls

UNKNOWN = "Whether it ran is unknown: it may have ended, or still run."
LOOK = "Check what it did before you do it again."
PATIENCE = 2.0  # seconds in which a person is told nothing


async def started(
    start: Coroutine[Any, Any, Running], end: Callable[[Running], Awaitable[object]], *, name: str
) -> Running:
    """Await `start`. If the caller is cancelled meanwhile, wait for the command and pass it to `end`."""
    starting = spawn(start, name=f"start {name}")
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.shield(spawn(_ended(starting, end), name=f"stop {name}"))
        raise


async def attached(place: Place, exec_id: str, context: CallContext) -> Running | None:
    """The command started by an earlier attempt of this call; None if it never started. Raises `OutcomeUnknown`."""
    try:
        found = await place.attach(exec_id)
        if found is not None or context.begun_at == await place.location(context.workspace):
            return found
    except PlaceFailed as error:
        raise OutcomeUnknown(f"Interrupted: {error.message} {UNKNOWN}", hint=LOOK, quoted=error.quoted) from error
    where = f" It was to run on {context.begun_at.machine}." if context.begun_at.machine else ""
    raise OutcomeUnknown(f"Interrupted: there is no record of this command here.{where} {UNKNOWN}", hint=LOOK)


@contextmanager
def told_meanwhile(place: Place, context: CallContext, after: float = PATIENCE) -> Iterator[None]:
    """Context manager: report every few seconds what the place is waiting for, if anything."""
    timers: list[asyncio.TimerHandle] = []

    def wait() -> None:
        timers[:] = [asyncio.get_running_loop().call_later(after, tell)]

    def tell() -> None:
        if words := place.waits_for(context.workspace):
            context.progress(words)
        wait()

    wait()
    try:
        yield
    finally:
        timers[0].cancel()


async def _ended(starting: asyncio.Task[Running], end: Callable[[Running], Awaitable[object]]) -> None:
    await asyncio.wait([starting])
    if not starting.cancelled() and starting.exception() is None:
        await end(starting.result())


SHOWN = 20


def origin_of(ended: Ended | None) -> Origin:
    """The label of a command's output: it is the workspace's only where the command is known to have talked to
    nobody."""
    return Origin.WORKSPACE if ended is not None and ended.reached == () else Origin.TOOL


async def decided(ended: Ended, context: CallContext) -> Ended:
    """Ask the person whether files that a command deleted in a remote place are to be deleted here too, and apply
    the answer; they stay if nobody can answer."""
    deletion = ended.deletion
    if deletion is None:
        return ended
    more = [f"and {len(deletion.paths) - SHOWN:,} more"] if len(deletion.paths) > SHOWN else []
    names = "\n".join((*deletion.paths[:SHOWN], *more))
    question = Question(
        text=f"The command deleted files elsewhere ({len(deletion.paths):,}). May I delete them here too? `/rollback` "
        f"puts back those that the checkpoint before the command holds.\n{names}\nin {context.workspace}",
        about=hashlib.sha256("\0".join(deletion.paths).encode("utf-8", "surrogateescape")).hexdigest(),
        choices=("once", "deny"),
        purpose="approval",
    )
    try:
        answer = await context.ask(question)
    except Refused:
        return ended
    agreed = answer.strip().lower() in ("once", "yes", "y", "o", "session", "always")
    note = await deletion.delete() if agreed else "The person said to keep them; they go there again."
    return replace(ended, notes=(*ended.notes, note), deletion=None)


LENT = ".lent"
LENT_IN = "secrets"
"""The folder of the cache where secrets stand while a command has them."""


def exec_name(text: str) -> str:
    """The text as part of an exec id: unchanged if valid, otherwise sanitized with a hash."""
    plain = re.sub(r"[^\w-]", "_", text, flags=re.ASCII)
    if plain == text and len(text) <= 120:
        return plain
    return f"{plain[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def short_id(exec_id: str) -> str:
    """The short id shown to the model and people: six hex digits, the same in every process."""
    return hashlib.sha256(exec_id.encode()).hexdigest()[:6]


def lent_name(key: str, name: str) -> str:
    """Name of the file that holds a secret for a command of the call `key`."""
    return f"{exec_name(key)}-{name}{LENT}"


def lent_in(command: str, key: str) -> tuple[str, ...]:
    """The secret files named in a command of this call."""
    if LENT not in command:
        return ()  # making the pattern takes longer than all else here
    return tuple(dict.fromkeys(re.findall(rf"'([^']*/{exec_name(key)}-\w+{re.escape(LENT)})'", command)))


WALL_LOOKS = 4000  # characters at the end of the output in which a sign of the wall is looked for
WALL_SIGNS = re.compile(
    r"[^\n:]*(Read-only file system|Permission denied|Operation not permitted|Could not resolve host"
    r"|Network is unreachable|Temporary failure in name resolution|Could not read from remote repository"
    r"|Cannot connect to the Docker daemon)"
)
MISSING = re.compile(r"(?:^|[\s'\"`:])(/[^\s:'\"`]+)['\"`]?:? (?:No such file or directory|cannot be found|not found)")
_SYSTEM = Walls()


class Outside:
    """Which calls may run outside the wall of a place, and what the wall refused the commands of each session."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._let_out: set[str] = set()
        self._stopped: dict[tuple[str, str], str] = {}

    def wall(self) -> str:
        """The name of the wall that commands run behind; empty if there is none. May block, the first time."""
        return self._place.wall()

    def let_out(self, key: str) -> None:
        """Let the command of the call with this key run outside."""
        self._let_out.add(key)

    def may(self, key: str) -> bool:
        """Whether the call was let out; asked once."""
        was = key in self._let_out
        self._let_out.discard(key)
        return was

    def stopped(self, session: str, command: str) -> str:
        """What the wall refused this command when it last ran in the session; empty if nothing."""
        return self._stopped.get((exec_name(session), command), "")

    def hint(self, ended: Ended, running: Running, output: str) -> str:
        """What the wall seems to have stopped where a command failed, as a line for the model; empty if nothing."""
        command, latest = running.command, output[-WALL_LOOKS:]
        found = WALL_SIGNS.search(latest)
        missing = (each[1] for each in MISSING.finditer(latest))
        hidden = next(
            (path for path in missing if _SYSTEM.access(path, command.folder, *command.folders) == "none"), ""
        )
        seems = found[0].strip() if found else f"{hidden} is not shown to it" if hidden else ""
        words = "; ".join(ended.stopped) or (f"it seems: {seems}" if seems else "")
        if command.outside or not ended.code or not words or not self.wall():
            return ""
        self._stopped[command.shell, command.text] = words
        return f"\n[the wall stopped it ({words}); outside=true asks the person to run it outside]"
