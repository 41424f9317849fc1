"""Homes of one household on one database, each with workers of its own, which tests kill."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from hermes_agent.app.settings import SERVED
from hermes_agent.core.chat import Conversation, Inbound, Principal, Standing
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.paths import Home
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from tests.cli.shell import PROGRAM, ROOT

OWNER = Principal(platform="cli", user="me", standing=Standing.OWNER)
OPEN = "SELECT count(*) FROM inbox WHERE ended IS NULL"
ENDED = "SELECT source_id, state, reason FROM inbox"
SETTINGS = """\
model:
  default: custom/m
  base_url: {model}
store:
  url: '{database}'
  shared: true
approvals:
  mode: 'off'
memory:
  memory_char_limit: 100000
{more}
"""


class Household:
    """The homes `names` in one folder, each with `workers` processes; what is killed is begun anew."""

    def __init__(
        self,
        folder: Path,
        database: str,
        model: str,
        *,
        names: Sequence[str] = ("north", "south"),
        workers: int = 1,
        more: str = "",
    ) -> None:
        self._folder = folder
        self.kills = 0
        self.homes: Mapping[str, Home] = {name: Home(root=folder / name, base=folder / name).ensure() for name in names}
        for home in self.homes.values():
            home.config_file.write_text(SETTINGS.format(model=model, database=database, more=more))
        self.processes = {f"{name} {number}": self._begun(name) for name in names for number in range(workers)}

    def _begun(self, name: str) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "HERMES_HOME": str(self.homes[name].root),
            "CUSTOM_API_KEY": "k",
        }
        with (self._folder / f"{name}.out").open("ab") as out:
            command = [sys.executable, "-c", PROGRAM, "worker"]
            return subprocess.Popen(command, env=environment, stdout=out, stderr=out)

    def kill(self, process: str) -> None:
        """`kill -9`, and another one in its place."""
        self.processes[process].send_signal(signal.SIGKILL)
        self.processes[process].wait()
        self.processes[process] = self._begun(process.partition(" ")[0])
        self.kills += 1

    def end(self) -> None:
        """Have all of them end."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait(40)

    def __enter__(self) -> Household:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


async def open_session(store: Store, number: int, workspace: Path) -> str:
    """A conversation with nothing in it; its session."""
    chat = Conversation(platform="api", chat=f"c{number}")
    record = Session(
        id=f"20260101_000000_{number:06d}",
        principal=OWNER.key,
        conversation=chat.key,
        surface="api",
        workspace=str(workspace),
        created=1.0 * number,
        updated=1.0 * number,
    )

    async def change(tx):
        await store.sessions.create(tx, record)
        await store.sessions.set_current(tx, chat.key, record.id)

    await store.write(change)
    return record.id


async def say(store: Store, session: str, text: str, number: int) -> None:
    """A message of the owner, which whoever is free works on."""
    inbound = Inbound(
        source="test",
        source_id=f"m{number}",
        principal=OWNER,
        conversation=Conversation(platform="api", chat=session),
        parts=(Text(text=text, origin=Origin.OWNER),),
        received=1.0 * number,
    )
    await store.inbox.accept(inbound, session, SERVED)


async def answered(store: Store, patience: float) -> dict[str, tuple[str, str]]:
    """Return when all is said and done; how each message ended."""
    until = monotonic() + patience
    while left := (await store.read(lambda tx: tx.rows(OPEN)))[0][0]:
        assert monotonic() < until, f"{left} messages never ended"
        await asyncio.sleep(0.1)
    return {row[0]: (row[1], row[2]) for row in await store.read(lambda tx: tx.rows(ENDED))}
