"""A board on a store of its own, without processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from hermes_agent.core.clock import Clock
from hermes_agent.host.paths import Home
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.work.card_runs import Caps
from hermes_agent.store.work.cards import Card, CardRun, Change, RunKind
from hermes_agent.work.board.board import Board
from hermes_agent.work.board.new_cards import NewCard
from hermes_agent.work.board.rules import By, Order, Role, Verb, moved
from hermes_agent.work.board.settings import BoardSettings, CheckSettings
from hermes_agent.work.board.worker import adopt

ME = By(name="cli:me", role=Role.OWNER, sees_all=True)
ANNA = By(name="telegram:2", role=Role.MEMBER)
SETTINGS = BoardSettings(checks={"tests": CheckSettings(command="pytest -q")})


def no_objection(folder: Path) -> str:
    return "it may hold credentials" if folder.name == ".ssh" else ""


def board_at(store: Store, root: Path, settings: BoardSettings = SETTINGS) -> Board:
    home = Home(root=root, base=root).ensure()
    return Board(store=store, home=home, settings=settings, clock=store.clock, objection=no_objection)


@asynccontextmanager
async def opened(folder: Path, clock: Clock | None = None) -> AsyncIterator[Board]:
    store = await open_store(folder / "hermes.db", clock=clock)
    try:
        yield board_at(store, folder / "home")
    finally:
        await store.close()


async def made(board: Board, title: str = "x", by: By = ME, **more) -> Card:
    return (await board.create(by, NewCard(title=title, **more))).card


def claimer(board: Board, kind: RunKind = RunKind.WORK):
    by = By(name="dispatcher", role=Role.BOARD, owner=board.store.workers.id)

    def decide(card: Card) -> tuple[Change, RunKind, str]:
        new = moved(card, Order(verb=Verb.CLAIM), by, 1.0)
        return Change(card=new, kind="claimed", by=by.name), kind, card.assignee

    return decide


async def claimed(board: Board) -> tuple[Card, CardRun]:
    ((card, run),) = await board.runs.claim("", Caps(), claimer(board), 1)
    return card, run


async def held(board: Board, folder: str = "") -> By:
    """The next card in the hands of a worker on the same store, which is the actor."""
    card, run = await claimed(board)
    if folder:
        await board.cards.change(card.id, lambda found: _in(found, folder), lambda _: None)
    return (await adopt(board, card.id, run.epoch)).by


def _in(card: Card, folder: str) -> Change:
    return Change(card=replace(card, folder=folder), kind="workspace", by="dispatcher")


async def ended(board: Board, card: str) -> None:
    """The processes of a card are gone."""
    for run, _ in await board.runs.open():
        if run.card == card:
            await board.end(run, Order(verb=Verb.END), 0, "")


def text(path: str | Path) -> str:
    return Path(path).read_text()
