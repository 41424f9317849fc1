"""The board under `kill -9`: of dispatchers, of workers, of both, while cards depend on each other."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic

import pytest

from hermes_agent.app.settings import Settings
from hermes_agent.app.work.board import board_on
from hermes_agent.core.messages import Role
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from hermes_agent.store.database import open_store
from hermes_agent.store.work.cards import CLOSED, CardRun, Status
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.testing.scripted import Script
from hermes_agent.work.board.board import Board
from hermes_agent.work.board.new_cards import NewCard
from hermes_agent.work.board.rules import Order, Verb
from tests.app.place import settle_home
from tests.cli.shell import PROGRAM, ROOT
from tests.measured import measured, path_of
from tests.work.board.harness import ME

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
MARK = "HERMES_KANBAN_EXEC="


def slow(heard: Heard) -> Answer | Call | Say:
    """A worker that needs a moment for each of three steps."""
    step = sum(message.role is Role.TOOL for message in heard.messages)
    calls = [
        Call("kanban_heartbeat", {"note": "1"}),
        Call("kanban_show"),
        Call("kanban_complete", {"summary": "Did it."}),
    ]
    pieces = (calls[step],) if step < len(calls) else (Say("ok"),)
    return Answer(pieces=pieces, pace=Pace(first=0.1))


class Fleet:
    """A home with dispatcher processes; its board as the test sees it."""

    def __init__(self, home: Home, board: Board) -> None:
        self.home, self.board = home, board
        self.dispatchers: list[subprocess.Popen[bytes]] = []

    def begin(self) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": path_of(ROOT / "src"),
            "HERMES_HOME": str(self.home.root),
            "CUSTOM_API_KEY": "k",
            **measured(),
        }
        with (self.home.root.parent / "out").open("ab") as out:
            command = [sys.executable, "-c", PROGRAM, "worker"]
            self.dispatchers.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))

    def kill_dispatcher(self, chance: random.Random) -> None:
        killed = self.dispatchers.pop(chance.randrange(len(self.dispatchers)))
        killed.kill()
        killed.wait()
        self.begin()

    async def states(self, ids: list[str]) -> list[Status]:
        return [(await self.board.cards.get(card)).status for card in ids]

    async def open(self, ids: list[str]) -> list[CardRun]:
        """The runs whose process is not known to be gone."""
        return [run for card in ids for run in await self.board.runs.of(card) if run.ended is None]

    def workers(self) -> list[int]:
        """The processes of cards, without the shells around them."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                variables, words = ((folder / each).read_bytes().split(b"\0") for each in ("environ", "cmdline"))
                is_ours = any(each.startswith(f"{MARK}{self.home.root}".encode()) for each in variables)
                found += [int(folder.name)] if is_ours and b"--card" in words else []
        return found

    def end(self) -> None:
        for each in self.dispatchers:
            each.kill()
            each.wait()
        for pid in self.workers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def fleet(folder: Path, script: Script, dispatchers: int = 1, more: str = "") -> AsyncIterator[Fleet]:
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(folder / "home", server.url, more)
        store = await open_store(home.ensure().database)
        found = Fleet(home, board_on(home, load(home, Settings).usable().value, store, store.clock))
        try:
            for _ in range(dispatchers):
                found.begin()
            yield found
        finally:
            found.end()
            await store.close()


async def test_no_card_is_done_twice_or_too_early_however_often_processes_are_killed(tmp_path: Path, full: bool):
    cards, kills, workers_killed = (150, 100, 300) if full else (10, 3, 6)
    chance = random.Random(3)
    async with fleet(tmp_path, slow, 2, "board:\n  max_running: 6\n") as found:
        ids: list[str] = []
        for number in range(cards):
            parents = tuple(sorted(set(chance.sample(ids, min(len(ids), chance.randrange(3))))))
            ids.append((await found.board.create(ME, NewCard(title=f"{number}", parents=parents))).card.id)

        ends, harm = monotonic() + (1500 if full else 60), Harm(found, chance, kills, workers_killed)
        while not {*CLOSED, Status.BLOCKED}.issuperset(await found.states(ids)):
            assert monotonic() < ends, await told(found, ids)
            await asyncio.sleep(0.3)
            harm.strike()
            await _wait_or_give_up(found, ids)

        assert await check_order(found, ids) >= cards * 0.7, await told(found, ids)


class Harm:
    """Kills dispatchers and workers at random, so many of each."""

    def __init__(self, found: Fleet, chance: random.Random, dispatchers: int, workers: int) -> None:
        self._fleet, self._chance = found, chance
        self._dispatchers, self._workers = dispatchers, workers

    def strike(self) -> None:
        if self._dispatchers and self._chance.random() < 0.4:
            self._dispatchers -= 1
            self._fleet.kill_dispatcher(self._chance)
        elif self._workers and (running := self._fleet.workers()):
            self._workers -= 1
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(running), signal.SIGKILL)


async def check_order(found: Fleet, ids: list[str]) -> int:
    """How many cards are done: each once, and begun after its parents were."""
    done, begun = dict[str, float](), dict[str, float]()
    for card in ids:
        events = await found.board.cards.events(card)
        completed = [each.at for each in events if each.kind == "complete"]
        assert len(completed) <= 1
        done |= dict.fromkeys([card] * len(completed), max(completed, default=0.0))
        claimed = [each.at for each in events if each.kind == "claimed"]
        begun |= dict.fromkeys([card] * bool(claimed), min(claimed, default=0.0))
        assert (await found.board.cards.get(card)).attempts <= 2
    for card in begun:
        assert all(done[parent] <= begun[card] for parent in await found.board.cards.parents(card))
    return len(done)


async def _wait_or_give_up(found: Fleet, ids: list[str]) -> None:
    """A card whose parent is blocked for good is cancelled, as a person would."""
    for card in ids:
        state = await found.board.cards.get(card)
        if state.status is Status.TODO:
            parents = [await found.board.cards.get(each) for each in await found.board.cards.parents(card)]
            if any(each.status in (Status.BLOCKED, Status.CANCELLED) for each in parents):
                await found.board.move(ME, card, Order(verb=Verb.CANCEL))


async def told(found: Fleet, ids: list[str]) -> str:
    lines = []
    for card in ids:
        state = await found.board.cards.get(card)
        runs = [(run.outcome, run.exit_code, run.ended is None) for run in await found.board.runs.of(card)]
        lines.append(f"{card} {state.status} {state.owner} {runs}")
    return "\n".join(lines)


async def test_workers_outlive_their_dispatcher_and_the_next_one_counts_their_end(tmp_path: Path):
    async with fleet(tmp_path, slow, 1, "board:\n  max_running: 5\n") as found:
        ids = [(await found.board.create(ME, NewCard(title=f"{number}"))).card.id for number in range(5)]
        async with asyncio.timeout(20):
            while len(found.workers()) < 5:
                await asyncio.sleep(0.05)
        gone = found.dispatchers.pop()
        gone.kill()
        gone.wait()

        async with asyncio.timeout(20):
            while set(await found.states(ids)) != {Status.DONE}:
                await asyncio.sleep(0.05)
            while found.workers():
                await asyncio.sleep(0.05)
        assert len(await found.open(ids)) == len(ids)

        found.begin()
        async with asyncio.timeout(20):
            while await found.open(ids):
                await asyncio.sleep(0.05)
        for card in ids:
            assert [(run.outcome, run.exit_code) for run in await found.board.runs.of(card)] == [("completed", 0)]
