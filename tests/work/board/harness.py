"""A home with a dispatcher in this process, worker processes of its own, and a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hermes_agent.app.opening import Options
from hermes_agent.app.settings import SERVED
from hermes_agent.app.work.board import board_on
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.work.cards import Card, Status
from hermes_agent.testing.scripted import Script
from hermes_agent.work.board.board import Board
from hermes_agent.work.board.new_cards import NewCard
from hermes_agent.work.board.rules import By, Role
from tests.app.place import Place, place

ME = By(name="cli:me", role=Role.OWNER, sees_all=True)
SECONDS = 25.0


@dataclass
class Desk:
    """The board of a running system."""

    here: Place
    board: Board

    async def create(self, title: str = "Write hello", **more) -> Card:
        return (await self.board.create(ME, NewCard(title=title, **more))).card

    async def until(self, card: str, *statuses: Status) -> Card:
        return await self.when(card, lambda found: found.status in statuses)

    async def when(self, card: str, is_so: Callable[[Card], bool]) -> Card:
        try:
            async with asyncio.timeout(SECONDS):
                while not is_so(found := await self.board.cards.get(card)):
                    await asyncio.sleep(0.02)
        except TimeoutError as error:
            raise AssertionError(await self.told(card)) from error
        return found

    async def over(self, card: str) -> list[str]:
        """Wait until no process of the card is open; the outcomes of its runs."""
        async with asyncio.timeout(SECONDS):
            while any(run.ended is None for run in await self.board.runs.of(card)):
                await asyncio.sleep(0.02)
        return [run.outcome for run in await self.board.runs.of(card)]

    async def noted(self, card: str, note: str) -> None:
        """Wait until a process of the card notes that it is so far."""
        async with asyncio.timeout(SECONDS):
            while all(run.note != note for run in await self.board.runs.of(card)):
                await asyncio.sleep(0.02)

    async def runs_of(self, *cards: str, outcome: str, most: int) -> None:
        """Wait until so many runs of these cards ended so."""
        try:
            await self._until_ended(cards, outcome, most)
        except TimeoutError as error:
            raise AssertionError([await self.told(card) for card in cards]) from error

    async def told(self, card: str) -> str:
        events = await self.board.cards.events(card)
        runs = [(run.kind.value, run.outcome, run.exit_code) for run in await self.board.runs.of(card)]
        return "\n".join([f"{runs}", *(f"{each.kind} {each.by}: {each.text}" for each in events)])

    async def _until_ended(self, cards: tuple[str, ...], outcome: str, most: int) -> None:
        async with asyncio.timeout(SECONDS):
            while True:
                found = [run.outcome for card in cards for run in await self.board.runs.of(card)]
                if found.count(outcome) >= most:
                    return
                await asyncio.sleep(0.02)

    async def log(self, card: str) -> list[str]:
        return [event.kind for event in await self.board.cards.events(card)]


@asynccontextmanager
async def desk(folder: Path, script: Script, more: str = "") -> AsyncIterator[Desk]:
    """A process that serves everybody, and so dispatches."""
    async with place(folder, script, Options(queue=SERVED, own_only=False), more=more) as here:
        system = here.runtime
        yield Desk(here=here, board=board_on(system.home, system.settings, system.store, system.clock))


def completing(heard: Heard) -> Call | Say:
    """The script of a worker that looks at its card and completes it."""
    steps = [Call("kanban_show"), Call("kanban_complete", {"summary": "Wrote hello."}), Say("Done.")]
    return steps[min(heard.turn, 2)]


def processes(here: Desk, card: str = "") -> list[int]:
    """The processes of cards of this home: `hermes` itself and what it started, without the shell around it."""
    mark = f"HERMES_KANBAN_EXEC={here.board.home.base}/cache/board-exec/board/{card}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            variables = (folder / "environ").read_bytes().split(b"\0")
            if any(each.startswith(mark) for each in variables) and b"worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return sorted(pid for pid in found if b"-c\0" not in Path(f"/proc/{pid}/cmdline").read_bytes())


async def gone(here: Desk) -> None:
    async with asyncio.timeout(SECONDS):
        while processes(here):
            await asyncio.sleep(0.02)
