"""Work at rest: what jobs, cards, goals and agents that wait or have ended cost a serving process, and a chat."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.figures import Figure
from bench.gateway import cpu, memory
from bench.start import HERMES, TEN_LINES, TIMES, to_request
from hermes_agent.app.household import local_owner
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.app.work import OWNER
from hermes_agent.app.work.board import board_on
from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService
from hermes_agent.core.chat import Conversation
from hermes_agent.host.loops import SETTLED_SECONDS
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.sessions import Session
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.children import Child, Delivery
from hermes_agent.store.work.goals import Criterion, Goal, Kind, State
from hermes_agent.testing.model_servers import KEY, ModelServer, openai_model, serving_in_thread
from hermes_agent.work.board.new_cards import NewCard
from hermes_agent.work.board.rules import By, Role
from hermes_agent.work.cron.schedule import parse
from tests.children import started

JOBS, CARDS, GOALS, CHILDREN = 1000, 200, 20, 50
ITEMS = JOBS + CARDS + GOALS + CHILDREN
REST_SECONDS = 20.0
MOST_SECONDS, QUIET = 60.0, 0.01
"""How long its start may take, and the seconds of CPU in two seconds below which it is over."""
DAY, HOUR = 86_400.0, 3_600.0
ME = By(name="cli:me", role=Role.OWNER, sees_all=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A serving process at rest: megabytes that it holds, per cent of a core, and wake-ups a minute."""

    memory: float
    cpu: float
    wakes: float


def measure() -> list[Figure]:
    """The figures of this module."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_in_thread(openai_model(lambda _: Say("Hello."))) as server,
    ):
        empty, filled = (_home(Path(folder) / name, server) for name in ("empty", "filled"))
        asyncio.run(_fill(filled))
        bare, full = _at_rest(empty), _at_rest(filled)
        asked = len(server.exchanges)
        least, alone, beside = _chats(server, empty, filled)
    what = f"{JOBS:,} jobs, {CARDS} cards, {GOALS} goals, {CHILDREN} agents at rest"
    grown = (full.memory - bare.memory) * 1000 / ITEMS
    return [
        Figure(name=f"model calls of {what}", value=asked, unit="calls", limit=0),
        Figure(name="CPU of them", value=full.cpu, unit="% of a core", limit=0.2),
        Figure(name="memory of each", value=grown, unit="kB", limit=40),
        Figure(name="wake-ups beside them", value=full.wakes, unit="a minute", limit=120),
        Figure(name="wake-ups of an empty home", value=bare.wakes, unit="a minute"),
        Figure(name="hermes -z beside them to its first request", value=beside, floor=least, unit="ms", limit=8),
        Figure(name="the same, by an empty home's", value=beside, floor=alone, unit="ms", limit=1.2),
    ]


def _home(folder: Path, server: ModelServer) -> Home:
    home = Home(root=folder, base=folder).ensure()
    home.config_file.write_text(
        f"model:\n  default: custom/m\n  base_url: {server.url}\ncron:\n  max_jobs: {2 * JOBS}\n"
    )
    return home


async def _fill(home: Home) -> None:
    async with open_system(home, Options(attended=False)) as system:
        await _jobs(system)
        await _cards(system)
        parent = await system.hermes.open_session(Conversation(platform="cli"), system.owner, workspace=str(home.root))
        for number in range(GOALS):
            await _goal(system, number)
        for number in range(CHILDREN):
            await _child(system, parent, number)


async def _jobs(system: System) -> None:
    """Each runs daily; the first is due in hours."""
    service = CronService(store=system.store, clock=system.clock, settings=system.settings, home=system.home)
    first = await service.drafted(local_owner(), Draft(schedule="every 1d", prompt="Look.", name="first"))
    now = system.clock.now()
    for number in range(JOBS):
        at = time.gmtime(now + 2 * HOUR + number * 20 * HOUR / JOBS)
        schedule = parse(f"{at.tm_min} {at.tm_hour} * * *", "UTC", now)
        job = replace(first, id=f"{number:012d}", name=f"job {number}", plan=replace(first.plan, schedule=schedule))
        assert await system.store.cron_jobs.add(job)


async def _cards(system: System) -> None:
    """Half wait for a person, half for one of those."""
    board = board_on(system.home, system.settings, system.store, system.clock)
    for number in range(CARDS // 2):
        held = await board.create(ME, NewCard(title=f"card {number}", hold=True))
        await board.create(ME, NewCard(title=f"after {number}", parents=(held.card.id,)))


async def _goal(system: System, number: int) -> None:
    """Half are paused, half wait until tomorrow."""
    where = Conversation(platform="cli", chat_kind="folder", chat=f"goal {number}")
    record = await system.hermes.open_session(where, system.owner, workspace=str(system.home.root))
    now = system.clock.now()
    goal = Goal(
        id=f"g_{number:06d}",
        principal=OWNER,
        text="Reach it.",
        created=now,
        criteria=(Criterion(kind=Kind.COMMAND, text="exit 1"),),
        state=State.WAITING if number % 2 else State.PAUSED,
        wait_until=now + DAY if number % 2 else None,
        session=record.id,
        folder=record.workspace,
    )
    await system.store.write(lambda tx: system.store.goals.put(tx, goal))


async def _child(system: System, parent: Session, number: int) -> None:
    now = system.clock.now()
    record = replace(parent, id=f"child-{number}", conversation=f"child:folder:{number}", surface="child")
    child = Child(
        session=record.id,
        parent=parent.id,
        run="r",
        call="c",
        n=number,
        goal="Look into it.",
        role="leaf",
        isolation="task",
        folder=record.workspace,
        queue="gateway",
        delivery=Delivery.CALL,
        created=now,
    )

    async def change(tx: Transaction) -> None:
        await system.store.sessions.create(tx, record)
        await system.store.children.add(tx, child, CHILDREN)
        await system.store.children.end(tx, record.id, "answered", "{}", now)

    await system.store.write(change)


def _at_rest(home: Home) -> Rest:
    with _serving(home) as pid:
        _wait_for_rest(pid)
        used, woken = cpu(pid), _wakes(pid)
        time.sleep(REST_SECONDS)
        busy = (cpu(pid) - used) / REST_SECONDS * 100
        return Rest(memory=memory(pid), cpu=busy, wakes=(_wakes(pid) - woken) * 60 / REST_SECONDS)


def _wait_for_rest(pid: int) -> None:
    """Wait until what the start brings (each job is planned) is over; for a minute at most."""
    ends, last = time.monotonic() + MOST_SECONDS, -1.0
    time.sleep(SETTLED_SECONDS)
    while cpu(pid) - last > QUIET and time.monotonic() < ends:
        last = cpu(pid)
        time.sleep(2)


@contextmanager
def _serving(home: Home) -> Iterator[int]:
    """`hermes worker` on this home, once it works."""
    process = started("worker", home=home.root, folder=home.root, CUSTOM_API_KEY=KEY)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def _wakes(pid: int) -> int:
    """How often threads of a process waited and were woken."""
    files = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/status")]
    lines = [line for text in files for line in text.splitlines() if line.startswith("voluntary_ctxt_switches")]
    return sum(int(line.split()[1]) for line in lines)


def _chats(server: ModelServer, *homes: Home) -> list[float]:
    """Milliseconds to the first request on the wire: of http.client, then of `hermes -z` on each home."""
    variables = {**os.environ, "CUSTOM_API_KEY": KEY}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    floor = [sys.executable, "-c", TEN_LINES, server.url]
    ours = [sys.executable, "-P", "-c", HERMES, "-z", "hi"]
    asking = [(floor, variables), *((ours, {**variables, "HERMES_HOME": str(home.root)}) for home in homes)]
    for command, with_these in asking:
        to_request(command, server, with_these)
    samples = [[to_request(command, server, these) for command, these in asking] for _ in range(TIMES)]
    return [1000 * sorted(column)[TIMES // 2] for column in zip(*samples, strict=True)]
