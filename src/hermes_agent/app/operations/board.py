"""Operations on the board: create, steer and read cards, watch them, and exchange them with other programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.app.work.board import opened_board
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import read_small
from hermes_agent.store.work.cards import Card as Card
from hermes_agent.store.work.cards import CardEvent, CardFile, CardRow, CardRun, Reason, Status
from hermes_agent.work.board.beads import Plan, exported, import_issues, read_issues
from hermes_agent.work.board.board import Board, CardView
from hermes_agent.work.board.new_cards import BASE, MAIN, NewCard, meant
from hermes_agent.work.board.rules import By, Order, Role
from hermes_agent.work.board.rules import Verb as Act

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

NOBODY = "Nothing works on cards now: start `hermes gateway` or `hermes worker`."
MOST = 10_000
LARGEST_IMPORT = 256 << 20
PERSONAL = frozenset({"cli", "library", "api", "agent"})
"""Where no letter is delivered."""


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
    return By(name=access.who.key, role=role, sees_all=access.sees_all and is_private)


async def list_cards(
    access: Access[HomeSystem], status: str = "", board: str = "", assignee: str = "", tenant: str = ""
) -> Listing:
    """Cards, the most urgent first; who is not the owner sees their own."""
    if status and status not in set(Status):
        raise HermesError(meant("status", status, list(Status)))
    async with board_of(access) as found:
        by = by_of(access)
        author = "" if by.sees_all else by.name
        rows = await found.cards.list_cards(
            board,
            status=status,
            assignee="" if assignee == BASE else assignee,
            tenant=tenant,
            author=author,
            limit=MOST,
        )
        return Listing(cards=rows, notice="" if await found.runs.is_dispatched() else NOBODY)


async def show_card(access: Access[HomeSystem], card: str) -> CardView:
    """A card with everything around it."""
    async with board_of(access) as board:
        return await board.view(by_of(access), card)


async def create_card(access: Access[HomeSystem], title: str, **said: str | float | bool) -> Card:
    """Create a card; whoever creates it from a chat is told how it goes. `said` are fields of `NewCard`, lists with
    commas."""
    lists = {name: _words(str(said.pop(name, ""))) for name in ("parents", "skills", "toolsets")}
    new = NewCard(title=title, **lists, **said)  # type: ignore[arg-type]  # the fields' own names
    async with board_of(access) as board:
        created = await board.create(by_of(access), new)
        if access.where is not None and access.where.platform not in PERSONAL:
            await board.watch(created.card.id, access.where)
        return created.card


async def update_card(access: Access[HomeSystem], card: str, **said: str | float) -> Card:
    """Change what a card says; empty fields stay."""
    given = {name: value for name, value in said.items() if value not in ("", -1)}
    given = {name: "" if value == "none" else value for name, value in given.items()}
    async with board_of(access) as board:
        return await board.update(by_of(access), card, **given)


async def delete_card(access: Access[HomeSystem], card: str) -> str:
    """Remove a card that never ran; any other is archived."""
    async with board_of(access) as board:
        return await board.delete(by_of(access), card)


async def assign_card(access: Access[HomeSystem], card: str, assignee: str) -> Card:
    """Give a card to a profile."""
    async with board_of(access) as board:
        return await board.assign(by_of(access), card, assignee)


async def move_card(access: Access[HomeSystem], card: str, status: str) -> Card:
    """Move a card to triage, todo or ready; a running one is stopped."""
    if status not in set(Status):
        raise HermesError(meant("status", status, list(Status)))
    return await _act(access, card, Order(verb=Act.MOVE, status=Status(status)))


async def start_card(access: Access[HomeSystem], card: str) -> Card:
    """Have a waiting card begin as soon as there is room."""
    return await _act(access, card, Order(verb=Act.START))


async def unblock_card(access: Access[HomeSystem], card: str, answer: str = "") -> Card:
    """Let a blocked card continue, with an answer for whoever works on it."""
    return await _act(access, card, Order(verb=Act.UNBLOCK), answer)


async def cancel_card(access: Access[HomeSystem], card: str) -> Card:
    """Cancel a card; its process is stopped."""
    return await _act(access, card, Order(verb=Act.CANCEL))


async def archive_card(access: Access[HomeSystem], card: str) -> Card:
    """Archive a card that is done or cancelled; its workspace goes some days later."""
    return await _act(access, card, Order(verb=Act.ARCHIVE))


async def complete_card(access: Access[HomeSystem], card: str, summary: str) -> Card:
    """Say that a card is done, or accept one that waits for a person."""
    async with board_of(access) as board:
        return await board.complete(by_of(access), card, summary)


async def block_card(access: Access[HomeSystem], card: str, why: str) -> Card:
    """Hold a card back until a person unblocks it."""
    async with board_of(access) as board:
        return await board.block(by_of(access), card, Reason.NEEDS_INPUT, why)


async def comment_card(access: Access[HomeSystem], card: str, text: str) -> str:
    """Say something on a card, to whoever works on it."""
    async with board_of(access) as board:
        await board.view(by_of(access), card)
        await board.comment(by_of(access), card, text)
    return "Said."


async def link_cards(access: Access[HomeSystem], parent: str, child: str, remove: bool = False) -> Card:
    """Make a card wait for another one (its parent), or no longer."""
    async with board_of(access) as board:
        return await board.link(by_of(access), parent, child, remove=remove)


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
            await board.create_board(name)
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
        return Counts(boards=boards, notice="" if await board.runs.is_dispatched() else NOBODY)


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
        return await exported(found, board)


async def _act(access: Access[HomeSystem], card: str, order: Order, text: str = "") -> Card:
    async with board_of(access) as board:
        return await board.move(by_of(access), card, order, text=text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.split(","))))
