"""Promises about what the agent cannot do, what keeps each, and probes that try to break them on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Literal

from hermes_agent.app.places import make_place, walls
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.host.paths import Home
from hermes_agent.host.process import Child, start_detached
from hermes_agent.sandbox.place import Command
from hermes_agent.tools.settings import TerminalSettings

SECONDS = 30.0
CANARY = "hermes-canary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A promise to the owner. `by` says what keeps it, `without` what is left where no wall stands. `probe` is shell
    code that prints the canary, or anything where `any_output`, if it breaks the promise; empty: only tests show it."""

    name: str
    says: str
    by: Literal["wall", "permission", "label", "ledger", "redactor"]
    without: str
    probe: str = ""
    any_output: bool = False


PROMISES = (
    Promise(
        name="home",
        says="Commands cannot see the home of Hermes: keys, conversations, settings, skills, notes.",
        by="wall",
        without="a hint: reading it asks",
        probe='ls -A "$P_HOME"; cat "$P_HOME"/canary "/proc/self/root$P_HOME/canary"',
    ),
    Promise(
        name="credentials",
        says="Commands cannot read what other programs keep to log in, whichever folder they work in.",
        by="wall",
        without="a hint: reading one asks",
        probe='IFS=:; for s in $P_STORES; do [ -n "$(head -c 1 "$s" || ls -A "$s/")" ] && echo "$s"; done',
        any_output=True,
    ),
    Promise(
        name="files",
        says="Commands write to the workspace and their own temporary folder, and to what a setting adds.",
        by="wall",
        without="a question, where the text of the command shows it",
        probe='echo x >"$P_FILE"; echo x >"$P_PERSON/.profile-canary"',
    ),
    Promise(
        name="network",
        says="Commands reach other machines through the proxy alone, which refuses private addresses.",
        by="wall",
        without="nothing",
        probe='exec 3<>/dev/tcp/127.0.0.1/"$P_PORT" && head -c 20 <&3',
    ),
    Promise(
        name="sockets",
        says="Commands reach no other program's socket: docker, the ssh agent, D-Bus, Hermes itself.",
        by="wall",
        without="nothing",
        probe=(
            'for address in "$P_SOCKET" "@$P_SOCKET"; do "$P_PYTHON" -c "import socket, sys; '
            "a = sys.argv[1]; s = socket.socket(socket.AF_UNIX); s.connect(a.replace('@', chr(0), 1)); "
            'print(s.recv(20).decode())" "$address"; done'
        ),
    ),
    Promise(
        name="processes",
        says="Commands neither see into other processes nor send them signals.",
        by="wall",
        without="a question, where the text of the command shows it",
        probe='tr "\\0" "\\n" <"/proc/$P_PID/environ"; kill "$P_PID"',
    ),
    Promise(
        name="kernel",
        says="Commands mount nothing and enter no other namespace.",
        by="wall",
        without="nothing",
        probe="unshare -m true && echo entered",
        any_output=True,
    ),
    Promise(
        name="environment",
        says="Variables that look like secrets are not in the environment of commands.",
        by="permission",
        without="the same",
        probe="env",
    ),
    Promise(
        name="pen",
        says="`hermes` below the agent approves, sets, undoes, pairs and trusts nothing.",
        by="wall",
        without="a hint: it looks for the agent among its parents",
        probe=(
            'HERMES_HOME="$P_HOME" "$P_PYTHON" -m hermes_agent learn undo 0 2>&1 | '
            f"grep -qE 'no home of Hermes|the owner|No module|not found' || echo {CANARY}"
        ),
    ),
    Promise(
        name="files by tools",
        says="File tools see what the wall shows; anything else asks, and the home is closed to them.",
        by="permission",
        without="writes outside the workspace ask; the home is closed",
    ),
    Promise(
        name="hard block",
        says="A command that would destroy a disk or a home is never run, whatever was allowed.",
        by="permission",
        without="the same",
    ),
    Promise(
        name="lessons",
        says="What was read from outside becomes no skill and no note without the owner.",
        by="label",
        without="the same; every output of a command counts as from outside",
    ),
    Promise(
        name="undo",
        says="Every change of a skill or note has an author, its evidence and an undo.",
        by="ledger",
        without="a hint: a command may write into the home; the change is found, and labelled outside",
    ),
    Promise(
        name="secrets",
        says="Keys of the home, and what looks like a key, are not in logs, records, exports or prompts.",
        by="redactor",
        without="the same",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the probe of a promise found. `wall` is the name of the wall, empty without one."""

    promise: Promise
    state: Literal["holds", "broken", "hint", "tested"]
    wall: str
    found: str = ""

    @property
    def kept_by(self) -> str:
        """What keeps the promise here, in words."""
        if self.promise.by != "wall":
            return self.promise.by
        return self.wall or f"no wall: {self.promise.without}"


async def probe(home: Home, settings: TerminalSettings, variables: Mapping[str, str], id_: str) -> list[Finding]:
    """Try to break each promise by one command where commands run, under this id, and name what came of it. Raises
    `PlaceFailed`, `TimeoutError`."""
    place = make_place(home, settings, {**variables, "CANARY_TOKEN": CANARY})
    stores = [path for path in walls(home, settings, variables).closed if Path(path) not in (home.root, home.base)]
    try:
        async with _bait(home) as bait, asyncio.timeout(SECONDS):
            values = {**bait.values, "P_STORES": ":".join(stores)}
            lines = [f"{name}={quote(value)}" for name, value in values.items()]
            lines += [f"echo '== {each.name}'; ({each.probe}) 2>/dev/null" for each in PROMISES if each.probe]
            command = Command(text="\n".join(lines), folder=bait.work, limit=SECONDS)
            running = await place.start(f"doctor/{id_}", command)
            await running.wait()
            parts = _parts((await running.read(0, 1 << 20)).decode("utf-8", "replace"))
            if not bait.bystander.is_alive:
                parts["processes"] = CANARY
            if any(file.exists() for file in bait.files):
                parts["files"] = CANARY
            wall = place.wall()
    finally:
        await place.close()
    return [_judged(promise, parts, wall) for promise in PROMISES]


def _parts(said: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in said.split("== ")[1:]:
        name, _, rest = part.partition("\n")
        found[name] = rest.strip()
    return found


def _judged(promise: Promise, parts: Mapping[str, str], wall: str) -> Finding:
    if not promise.probe:
        return Finding(promise=promise, state="tested", wall=wall)
    said = parts.get(promise.name)
    if said is None:
        raise ToolError("The probes could not be run: the shell ended before they did.")
    if said if promise.any_output else CANARY in said:
        state: Literal["broken", "hint"] = "broken" if wall or promise.by != "wall" else "hint"
        return Finding(promise=promise, state=state, wall=wall, found=said[:200])
    return Finding(promise=promise, state="holds", wall=wall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bait:
    """What the probes reach for, as variables of the shell; their workspace, files that must not come to be, and a
    process that is not theirs."""

    values: Mapping[str, str]
    work: str
    files: tuple[Path, ...]
    bystander: Child


@asynccontextmanager
async def _bait(home: Home) -> AsyncIterator[Bait]:
    """A file in the home, one in another folder, a port, two sockets, a process."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp))
    work, local, canary = folder / "work", str(folder / "socket"), home.root / "canary"
    files = (folder / "file", Path.home() / ".profile-canary")
    work.mkdir()
    canary.write_text(CANARY)
    bystander = _bystander()

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CANARY.encode())
        writer.close()

    servers = [await asyncio.start_server(greet, "127.0.0.1", 0), await asyncio.start_unix_server(greet, local)]
    with suppress(OSError):  # abstract names are Linux'
        servers.append(await asyncio.start_unix_server(greet, f"\0{local}"))
    values = {
        "P_HOME": str(home.root),
        "P_FILE": str(files[0]),
        "P_PERSON": str(Path.home()),
        "P_PORT": str(servers[0].sockets[0].getsockname()[1]),
        "P_SOCKET": local,
        "P_PYTHON": sys.executable,
        "P_PID": str(bystander.identity.pid),
    }
    try:
        yield Bait(values=values, work=str(work), files=files, bystander=bystander)
    finally:
        bystander.signal(9)
        for server in servers:
            server.close()
        for left in (canary, *files):
            left.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _bystander() -> Child:
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        return start_detached(["sleep", str(SECONDS)], cwd="/", env={"X": CANARY}, stdin=None, out=nowhere)
    finally:
        os.close(nowhere)
