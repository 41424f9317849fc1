"""The dispatcher with programs of this machine in the place of `hermes`, and a clock of the test's own."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_agent.host.paths import card_workspaces
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.work.cards import Reason, Status
from hermes_agent.testing.clock import FakeClock
from hermes_agent.work.board.board import Board
from hermes_agent.work.board.dispatcher import DAY, LINGER, PAUSE, SECOND_LOOK, Dispatcher, Machine
from hermes_agent.work.board.rules import MAX_CRASHES, Order, Verb
from hermes_agent.work.board.settings import BoardSettings
from hermes_agent.work.board.workspaces import Workspaces
from tests.work.board.boards import ANNA, ME, board_at, claimed, held, made

ENV = {"PATH": "/usr/bin:/bin"}
SLEEPS = ("sleep 600; true",)
FAILS = ("exit 3; true",)


@dataclass
class Post:
    board: Board
    clock: FakeClock
    dispatcher: Dispatcher
    place: LocalPlace

    async def look(self) -> float | None:
        """What the alarm does: fire while something is due."""
        while (due := await self.dispatcher.next_due()) is not None and due <= self.clock.now():
            await self.dispatcher.fire()
            await asyncio.sleep(0.01)
        return due

    async def until_over(self, card: str) -> list[str]:
        async with asyncio.timeout(10):
            while any(run.ended is None for run in await self.board.runs.of(card)):
                await self.look()
                await asyncio.sleep(0.01)
        return [run.outcome for run in await self.board.runs.of(card)]


def machine(root: Path, board: Board, shell: Sequence[str]) -> tuple[Machine, LocalPlace]:
    place = LocalPlace(folder=root / "exec", env=ENV)
    hermes = ("sh", "-c", shell[0])
    spaces = Workspaces(card_workspaces(board.home), ENV)
    return Machine(host="", programs=place, checks=lambda: place, workspaces=spaces, hermes=hermes), place


@asynccontextmanager
async def post(
    folder: Path, shell: Sequence[str] = SLEEPS, settings: BoardSettings | None = None, store: Store | None = None
) -> AsyncIterator[Post]:
    clock = FakeClock()
    store = store or await open_store(folder / "hermes.db", clock=clock)
    board = board_at(store, folder / "home", settings or BoardSettings())
    here, place = machine(folder, board, shell)
    found = Post(board=board, clock=clock, dispatcher=Dispatcher(board, clock, here), place=place)
    try:
        yield found
    finally:
        await found.dispatcher.close()
        for run, _ in await board.runs.open():
            if running := await place.attach(run.exec_id):
                await running.kill()
        await place.close()
        await store.close()


async def test_an_idle_board_wants_no_time_at_all(tmp_path: Path, full: bool):
    async with post(tmp_path) as here:
        for _ in range(1000 if full else 50):
            card = await made(here.board, hold=True)
            await here.board.move(ME, card.id, Order(verb=Verb.CANCEL))
        assert await here.look() is None


async def test_cards_beyond_the_cap_wait_until_there_is_room(tmp_path: Path):
    async with post(tmp_path, settings=BoardSettings(max_running=2)) as here:
        cards = [await made(here.board, priority=number) for number in range(3)]
        await here.look()
        states = [(await here.board.cards.get(card.id)).status for card in cards]
        assert states == [Status.RUNNING, Status.RUNNING, Status.READY]

        await here.board.move(ME, cards[0].id, Order(verb=Verb.CANCEL))
        assert await here.until_over(cards[0].id) == ["cancelled"]
        await here.look()
        assert (await here.board.cards.get(cards[2].id)).status is Status.RUNNING


async def test_a_program_that_fails_at_once_pauses_its_profile_and_then_is_a_persons(tmp_path: Path):
    async with post(tmp_path, FAILS) as here:
        card = await made(here.board)
        for _ in range(3):
            await here.look()
            await here.until_over(card.id)
        assert (await here.board.cards.get(card.id)).crashes == 3
        await here.look()
        assert len(await here.board.runs.of(card.id)) == 3

        for _ in range(MAX_CRASHES - 3):
            here.clock.set_now(here.clock.now() + PAUSE + 1)
            await here.look()
            await here.until_over(card.id)
        blocked = await here.board.cards.get(card.id)
        assert (blocked.status, blocked.blocked) == (Status.BLOCKED, Reason.FAILED)

        for _ in range(7):
            here.clock.set_now(here.clock.now() + DAY)
            await here.look()
        assert len(await here.board.runs.of(card.id)) == MAX_CRASHES


async def test_a_claim_whose_dispatcher_died_before_the_start_is_free_again(tmp_path: Path):
    async with post(tmp_path) as here:
        card = await made(here.board)
        await claimed(here.board)  # and nothing was started
        await here.look()
        assert (await here.board.cards.get(card.id)).status is Status.RUNNING
        here.clock.set_now(here.clock.now() + SECOND_LOOK)
        await here.look()
        assert [run.outcome for run in await here.board.runs.of(card.id)] == ["reclaimed", ""]


async def test_the_process_of_another_dispatcher_is_found_again(tmp_path: Path):
    async with post(tmp_path) as here:
        card = await made(here.board)
        await here.look()
        await asyncio.sleep(0.1)
        await here.dispatcher.close()
        other, _ = machine(tmp_path, here.board, SLEEPS)
        here.dispatcher = Dispatcher(here.board, here.clock, other)
        await here.look()
        await here.board.move(ME, card.id, Order(verb=Verb.CANCEL))
        assert await here.until_over(card.id) == ["cancelled"]


async def test_work_without_progress_is_told_once_and_goes_on(tmp_path: Path):
    async with post(tmp_path) as here:
        card = await made(here.board)
        await here.board.cards.watch(card.id, "telegram:dm:1")
        await here.look()
        for _ in range(3):
            here.clock.set_now(here.clock.now() + 3601)
            await here.look()
        (slot,) = await here.board.store.outbox.claim(["telegram"])
        assert slot.content.text.startswith("No progress for 60 minutes")
        assert (await here.board.cards.get(card.id)).status is Status.RUNNING


async def test_a_workspace_goes_some_days_after_the_archive_and_what_stays_is_said(tmp_path: Path):
    async with post(tmp_path) as here:
        cards = [await made(here.board) for _ in range(2)]
        await here.look()
        found = [await here.board.cards.get(card.id) for card in cards]
        await asyncio.to_thread((Path(found[1].folder) / ".git").mkdir)
        for card in cards:
            await here.board.move(ME, card.id, Order(verb=Verb.CANCEL))
            await here.until_over(card.id)
            await here.board.move(ME, card.id, Order(verb=Verb.ARCHIVE))
        assert await asyncio.to_thread(Path(found[0].folder).exists)

        here.clock.set_now(here.clock.now() + 7 * DAY + 1)
        assert await here.look() is None

        assert not await asyncio.to_thread(Path(found[0].folder).exists)
        assert await asyncio.to_thread(Path(found[1].folder).exists)
        last = [(await here.board.cards.events(card.id))[-1] for card in cards]
        assert [event.kind for event in last] == ["cleaned", "kept"]
        assert "a git repository is in it" in last[1].text


async def test_a_passing_trouble_passes_by_itself(tmp_path: Path):
    async with post(tmp_path) as here:
        card = await made(here.board)
        by = await held(here.board)
        await here.board.block(by, card.id, Reason.TRANSIENT, "no network", minutes=10)
        here.clock.set_now(here.clock.now() + SECOND_LOOK)
        assert await here.look() is not None
        await here.look()  # The first process left no trace: it is over.
        here.clock.set_now(here.clock.now() + 601)
        async with asyncio.timeout(10):
            while (await here.board.cards.get(card.id)).status is not Status.RUNNING:
                await here.look()


async def test_a_repository_that_is_gone_is_the_cards_fault(tmp_path: Path):
    async with post(tmp_path) as here:
        (tmp_path / "repo").mkdir()
        card = await made(here.board, workspace=f"worktree:{tmp_path / 'repo'}", max_attempts=1)
        await here.look()
        assert await here.until_over(card.id) == ["gave_up"]
        blocked = await here.board.cards.get(card.id)
        assert blocked.blocked is Reason.FAILED
        assert "is it a repository" in (await here.board.cards.events(card.id))[-1].text


async def test_the_command_names_the_card_its_claim_and_the_base_home(tmp_path: Path):
    async with post(tmp_path) as here:
        await made(here.board)
        card, run = await claimed(here.board)
        own = Machine(host="", programs=here.place, checks=lambda: here.place, workspaces=Workspaces(tmp_path, ENV))
        command = own.command(here.board, replace(card, folder="/a b"), replace(run, profile="ann"))
        assert command.text == (
            f"HERMES_HOME={here.board.home.base} HERMES_KANBAN_TASK={card.id} HERMES_KANBAN_WORKSPACE='/a b' "
            f"{sys.executable} -m hermes_agent -p ann worker --card {card.id} --epoch {run.epoch}"
        )


async def test_the_card_of_a_person_who_is_removed_stops_with_a_word(tmp_path: Path):
    gone = set[str]()
    async with post(tmp_path) as here:
        other, _ = machine(tmp_path, here.board, SLEEPS)
        here.dispatcher = Dispatcher(here.board, here.clock, other, lambda person: person not in gone)
        running = await made(here.board, by=ANNA)
        await here.look()
        await asyncio.sleep(0.1)
        gone.add(ANNA.name)
        waiting = await made(here.board, by=ANNA)
        here.clock.set_now(here.clock.now() + 1)
        await here.look()
        for card in (running, waiting):
            found = await here.board.cards.get(card.id)
            assert (found.status, found.owner) == (Status.BLOCKED, "")
            assert (await here.board.cards.events(card.id))[-1].text == "telegram:2 may not use this agent any more."
        here.clock.set_now(here.clock.now() + LINGER)
        assert await here.until_over(running.id) == ["blocked"]
