"""Operations on the board: create, steer and read cards, watch them, and exchange them with other programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from hermes_agent.app.manifest import TOOLSETS
from hermes_agent.app.operations.access import Access, HomeSystem
from hermes_agent.app.work.board import opened_board
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import read_small
from hermes_agent.store.work.cards import Card as Card, CardEvent, CardFile, CardRow as CardRow, CardRun, Reason, Status
from hermes_agent.tools.surfaces import check_toolset
from hermes_agent.work.board.beads import Plan, exported, import_issues, read_issues
from hermes_agent.work.board.board import Board, CardView as CardView
from hermes_agent.work.board.new_cards import MAIN, NewCard, assignee_of, meant
from hermes_agent.work.board.rules import By, Order, Role, Verb as Act

P = ParamSpec("P")
T = TypeVar("T")
NOBODY = "Nothing works on cards now: start `hermes gateway` or `hermes worker`."
MOST = 10_000
LARGEST_IMPORT = 256 << 20
PERSONAL = frozenset({"cli", "library", "api", "agent"})
"""Where no letter is delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made(Card):
    """A card that was asked for; one whose key was used before is not new."""

    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Cards, and a notice where nobody works on them (empty: somebody does)."""

    cards: Sequence[CardRow]
    notice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many cards each board has, by status, and whether a process works on them."""

    boards: dict[str, dict[str, int]]
    notice: str = ""


@asynccontextmanager
async def board_of(access: Access[HomeSystem]) -> AsyncIterator[Board]:
    """Context manager: the board, for whoever may use it. Raises `HermesError` for a guest."""
    if access.who.standing is Standing.GUEST:
        raise HermesError("Guests have no board.")
    system = access.system
    async with opened_board(system.home, system.settings, system.store, system.clock) as board:
        yield board


def by_of(access: Access[HomeSystem]) -> By:
    """The person as an actor on the board. Where others read along, the owner too sees only what is theirs."""
    role = Role.OWNER if access.sees_all else Role.MEMBER
    is_private = access.where is None or access.where.is_private
    return By(
        name=access.who.key,
        role=role,
        sees_all=access.sees_all and is_private,
        tainted=access.is_program,
        folder=access.folder,
    )


async def list_cards(
    access: Access[HomeSystem], status: str = "", board: str = "", assignee: str = "", tenant: str = ""
) -> Listing:
    """Cards, the most urgent first; who is not the owner sees their own."""
    if status and status not in set(Status):
        raise HermesError(meant("status", status, list(Status)))
    async with board_of(access) as found:
        by = by_of(access)
        if board:
            await found.new.board(board)
        if assignee:
            await found.new.profile(assignee)
        author = "" if by.sees_all else by.name
        rows = await found.cards.list_cards(
            board,
            status=status,
            assignee=assignee_of(assignee),
            tenant=tenant,
            author=author,
            limit=MOST + 1,
        )
        notices = [f"More than {MOST:,} cards: name a status, board or assignee."] if len(rows) > MOST else []
        notices += filter(None, [await _unserved(found)])
        return Listing(cards=rows[:MOST], notice=" ".join(notices))


async def _unserved(board: Board) -> str:
    """A sentence where no living process starts cards; else empty."""
    return "" if board.settings.dispatch and await board.store.activity.serving() else NOBODY


def on_board(
    act: Callable[Concatenate[Board, By, P], Awaitable[T]],
) -> Callable[Concatenate[Access[Any], P], Awaitable[T]]:
    """The operation that does something on the board."""

    async def operation(access: Access[Any], /, *args: P.args, **given: P.kwargs) -> T:
        async with board_of(access) as board:
            return await act(board, by_of(access), *args, **given)

    return operation


def _moves(verb: Act) -> Callable[..., Awaitable[Card]]:
    async def act(board: Board, by: By, card: str, text: str = "") -> Card:
        return await board.move(by, card, Order(verb=verb), text=text)

    return act


async def _block(board: Board, by: By, card: str, why: str) -> Card:
    return await board.block(by, card, Reason.NEEDS_INPUT, why)


async def _move(board: Board, by: By, card: str, status: str) -> Card:
    if status not in set(Status):
        raise HermesError(meant("status", status, list(Status)))
    return await board.move(by, card, Order(verb=Act.MOVE, status=Status(status)))


show_card, delete_card, assign_card = on_board(Board.view), on_board(Board.delete), on_board(Board.assign)
complete_card, comment_card, link_cards = on_board(Board.complete), on_board(Board.comment), on_board(Board.link)
start_card, unblock_card = on_board(_moves(Act.START)), on_board(_moves(Act.UNBLOCK))
cancel_card, archive_card = on_board(_moves(Act.CANCEL)), on_board(_moves(Act.ARCHIVE))
block_card, move_card = on_board(_block), on_board(_move)


async def create_card(access: Access[HomeSystem], title: str, **said: str | float | bool) -> Made:
    """Create a card; whoever creates it from a chat is told how it goes. `said` are fields of `NewCard`, lists with
    commas."""
    lists = {name: _words(str(said.pop(name, ""))) for name in ("parents", "skills", "toolsets")}
    for toolset in lists["toolsets"]:
        check_toolset(toolset, TOOLSETS)
    new = NewCard(title=title, **lists, **said)  # type: ignore[arg-type]  # the fields' own names
    async with board_of(access) as board:
        created = await board.create(by_of(access), new)
        if access.where is not None and access.where.platform not in PERSONAL:
            await board.watch(created.card.id, access.where)
        return Made(is_new=created.is_new, **{each.name: getattr(created.card, each.name) for each in fields(Card)})


async def update_card(access: Access[HomeSystem], card: str, **said: str | float) -> Card:
    """Change what a card says; empty fields stay."""
    given = {name: value for name, value in said.items() if value not in ("", -1)}
    given = {name: "" if value == "none" else value for name, value in given.items()}
    async with board_of(access) as board:
        return await board.update(by_of(access), card, **given)


async def attach_file(access: Access[HomeSystem], card: str, path: str) -> CardFile:
    """Keep a copy of a file with a card."""
    access.check_owner("Only the owner attaches files of this machine.")
    async with board_of(access) as board:
        return await board.attach(by_of(access), card, path, access.folder)


async def watch_card(access: Access[HomeSystem], card: str, to: str = "", stop: bool = False) -> str:
    """Tell a chat how a card, or a whole board (`board:NAME`), goes."""
    where = Conversation.parse(to) if to else access.where
    if where is None or where.platform in PERSONAL:
        raise HermesError("Say which chat: `--to telegram:dm:123`, or write `/kanban watch` in that chat.")
    if where != access.where:
        access.check_owner("Only the owner says what other chats are told.")
    async with board_of(access) as board:
        if not card.startswith("board:"):
            await board.view(by_of(access), card)
        elif not access.sees_all:
            raise HermesError("Only the owner watches a whole board.")
        await board.watch(card, where, stop=stop)
    return f"{where.key} {'is no longer told' if stop else 'is told'} how {card} goes."


async def list_boards(access: Access[HomeSystem], name: str = "") -> Sequence[str]:
    """The boards; with a new name, create one."""
    async with board_of(access) as board:
        if name:
            access.check_owner("Only the owner creates boards.")
            await board.new.create_board(name)
        return sorted({MAIN, *await board.cards.boards()})


async def list_runs(access: Access[HomeSystem], card: str) -> Sequence[CardRun]:
    """The processes that worked on a card."""
    return (await show_card(access, card)).runs


async def list_events(access: Access[HomeSystem], card: str) -> Sequence[CardEvent]:
    """What happened to a card, in order."""
    return (await show_card(access, card)).events


async def count_cards(access: Access[HomeSystem]) -> Counts:
    """How many cards there are, by board and status."""
    access.check_owner("Only the owner sees everybody's cards.")
    async with board_of(access) as board:
        boards: dict[str, dict[str, int]] = {}
        for name, status, count in await board.cards.stats():
            boards.setdefault(name, {})[status] = count
        return Counts(boards=boards, notice=await _unserved(board))


async def import_cards(access: Access[HomeSystem], path: str, apply: bool = False, board: str = MAIN) -> Plan:
    """Read the issues of `bd export` (JSON lines); with `apply` make cards of them, in triage."""
    access.check_owner("Only the owner imports cards.")
    content = await asyncio.to_thread(read_small, Path(access.folder or ".") / path, LARGEST_IMPORT)
    if content is None:
        raise HermesError(f"There is no file {path}.")
    issues, wrong = read_issues(content)
    async with board_of(access) as found:
        return await import_issues(found, by_of(access), board, issues, wrong, apply=apply)


async def export_cards(access: Access[HomeSystem], board: str = MAIN) -> str:
    """All cards of a board as issues, for `bd import` (JSON lines)."""
    access.check_owner("Only the owner exports cards.")
    async with board_of(access) as found:
        await found.new.board(board)
        return await exported(found, board)


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.split(","))))
