"""Joins the board to a process: the database of the base home, the dispatcher, and the tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from hermes_agent.app.chats.people import People
from hermes_agent.app.household import local_owner, open_store_of
from hermes_agent.app.places import walls
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings, standing_by_key
from hermes_agent.app.work import OWNER
from hermes_agent.core.chat import Principal, Standing, Standings
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import UnknownCard
from hermes_agent.core.messages import Trust
from hermes_agent.core.tool import CallContext
from hermes_agent.host.config import load
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import Home, card_workspaces, environment
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.place import Place
from hermes_agent.sandbox.walls import UNBOUNDED
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Dialect
from hermes_agent.store.work.cards import Status
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.surfaces import standing_here
from hermes_agent.work.board.board import Board
from hermes_agent.work.board.dispatcher import Dispatcher, Machine, one_round as one_round
from hermes_agent.work.board.rules import By, Role
from hermes_agent.work.board.tools import BoardTools
from hermes_agent.work.board.worker import CardWorker as CardWorker, Holding, adopt as adopt
from hermes_agent.work.board.workspaces import Workspaces

RECORDS = "board-exec"
MARK = "HERMES_KANBAN_EXEC"
"""The variable by which all that a card's process started is known."""


class Programs(LocalPlace):
    """Runs programs of this user on this machine, outside the wall: the agent starts nothing here."""

    mark = MARK


@asynccontextmanager
async def opened_board(home: Home, settings: Settings, store: Store, clock: Clock) -> AsyncIterator[Board]:
    """Context manager: the board of a home, in the database of its base home. Raises `HomeError`, `StoreError`."""
    if not home.profile:
        yield board_on(home, settings, store, clock)
        return
    base = base_of(home)
    shared = load(base, Settings).usable().value
    if shared.store.url == settings.store.url and store.dialect is Dialect.POSTGRES:
        yield board_on(base, shared, store, clock)
        return
    async with own_board(base, shared, clock) as board:
        yield board


@asynccontextmanager
async def own_board(base: Home, settings: Settings, clock: Clock) -> AsyncIterator[Board]:
    """Context manager: the board of a base home, with a store of its own."""
    store = await open_store_of(base.ensure(), settings.store, clock)
    try:
        yield board_on(base, settings, store, clock)
    finally:
        await store.close()


def base_of(home: Home) -> Home:
    """The home that all profiles share."""
    return Home(root=home.base, base=home.base)


def board_on(base: Home, settings: Settings, store: Store, clock: Clock) -> Board:
    """The board on the open store of a base home."""
    return Board(store=store, home=base, settings=settings.board, clock=clock, objection=_objection(base, settings))


def _objection(base: Home, settings: Settings) -> Callable[[Path], str]:
    built = cache(partial(walls, base, settings.terminal, environment()))
    guard = Guard(home=base.root, person=Path.home(), walls=built, walled=settings.terminal.jail != "none")

    def objection(folder: Path) -> str:
        return "it holds the system" if str(folder) in UNBOUNDED else guard.objection(folder, writes=True)

    return objection


async def held_for(holding: Holding, settings: Settings) -> tuple[Holding, Principal]:
    """A held card with the right of its person, who is looked up in the settings of the base home. Whether they may
    use the agent at all is for the dispatcher."""
    people, key = People(settings.gateway.channels), holding.card.person
    await people.meet(holding.board.store)
    platform, _, user = key.partition(":")
    found = people.standing(key) or standing_by_key(settings.api, key) or standing_here(key)
    if not user or found is Standing.OWNER:
        return replace(holding, by=replace(holding.by, sees_all=True)), local_owner()
    return holding, Principal(platform=platform, user=user, standing=Standing.MEMBER)


def standing_beside(person: Principal, key: str) -> Standing:
    """The role of whoever works beside the person of a card."""
    return person.standing if key == person.key else standing_here(key)


def board_alarm(needs: Needs) -> Dispatcher | None:
    """The dispatcher of a base home; a profile has none, since the base home starts the processes of all."""
    is_wanted = needs.get(Settings).board.dispatch and not needs.get(Home).profile
    return dispatcher_of(needs) if is_wanted else None


def dispatcher_of(needs: Needs) -> Dispatcher:
    """The dispatcher of a base home."""
    home, settings = needs.get(Home), needs.get(Settings)
    store, clock = needs.get(Store), needs.get(Clock)
    machine = Machine(
        host=store.workers.machine if store.dialect is Dialect.POSTGRES else "",
        programs=Programs(folder=home.cache / RECORDS, env=dict(environment())),
        checks=needs.later(Place),
        workspaces=Workspaces(card_workspaces(home), environment()),
    )
    standings = needs.get(Standings)
    return Dispatcher(
        board_on(home, settings, store, clock),
        clock,
        machine,
        lambda person: ":" not in person or standings.of(person) is not Standing.GUEST,
    )


def card_state(needs: Needs) -> Callable[[str, str], Awaitable[str]]:
    """Factory of what tells the goals of a person the state of a card that they may see (empty: there is none)."""

    async def state(whose: str, card: str) -> str:
        by = By(name=whose, role=Role.MEMBER, sees_all=whose == OWNER)
        async with opened_board(needs.get(Home), needs.get(Settings), needs.get(Store), needs.get(Clock)) as board:
            with suppress(UnknownCard):
                found = (await board.view(by, card)).card
                return Status.DONE if found.done else found.status
        return ""

    return state


def board_tools(needs: Needs) -> BoardTools:
    """Factory of the toolset `board`: of the card that this process holds, otherwise of whoever speaks."""
    holding, store = needs.get(Options).holding, needs.later(Store)

    def opened() -> AbstractAsyncContextManager[Board]:
        if holding is not None:
            return nullcontext(holding.board)
        return opened_board(needs.get(Home), needs.get(Settings), store(), needs.get(Clock))

    def by(context: CallContext) -> By:
        if holding is not None:
            return holding.by
        others = [each for each in context.speakers if not needs.get(Standings).is_owner(each)]
        return By(
            name=context.speaker or next(iter(others), "agent"),
            role=Role.AGENT,
            sees_all=not others,
            tainted=context.trust is not Trust.CLEAN,
            folder=context.workspace,
        )

    return BoardTools(opened, by)
