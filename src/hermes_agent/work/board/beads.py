"""Exchange with beads (`bd` 1.3): its issues as JSON lines become cards, and cards become such lines again."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.work.cards import Card, Status
from hermes_agent.work.board.board import Board
from hermes_agent.work.board.new_cards import LONGEST_BODY, LONGEST_TITLE, PRIORITIES, origin_of
from hermes_agent.work.board.rules import By, Role

KEY = "beads:"
BLOCKS = "blocks"
STATUS: Mapping[Status, str] = {
    Status.RUNNING: "in_progress",
    Status.REVIEW: "in_progress",
    Status.BLOCKED: "blocked",
    Status.DONE: "closed",
    Status.CANCELLED: "closed",
    Status.ARCHIVED: "closed",
}
"""What a card's status is there; any other is `open`."""
MOST_SKIPPED = 20


class Dependency(msgspec.Struct, frozen=True):
    """One link of an issue to another one."""

    depends_on_id: str = ""
    type: str = BLOCKS


class Issue(msgspec.Struct, frozen=True):
    """What of an issue a card is made of; `line` is all of it."""

    id: str
    title: str
    description: str | None = ""
    status: str = "open"
    priority: int | None = 2
    close_reason: str | None = ""
    closed_at: datetime | None = None
    dependencies: tuple[Dependency, ...] | None = ()
    line: str = ""

    @property
    def blockers(self) -> tuple[str, ...]:
        """The issues that come before this one."""
        return tuple(each.depends_on_id for each in self.dependencies or () if each.type == BLOCKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an import does: cards that are new, and known already; links; what is left out, and why."""

    new: int
    known: int
    links: int
    skipped: Sequence[str]
    applied: bool


def read_issues(content: bytes) -> tuple[list[Issue], list[str]]:
    """The issues of an export, and what is wrong with the other lines."""
    issues, wrong = [], []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not line.strip():
            continue
        try:
            issue = msgspec.json.decode(line, type=Issue)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            wrong.append(f"Line {number} is no issue: {error}")
            continue
        if issue.status != "tombstone":
            issues.append(msgspec.structs.replace(issue, line=line.decode()))
    return issues, wrong


async def import_issues(
    board: Board, by: By, name: str, issues: Sequence[Issue], wrong: Sequence[str], *, apply: bool
) -> Plan:
    """Make cards of issues: closed ones are done, all others wait in triage, so that nothing starts by itself. An issue
    that was imported before stays as it is."""
    await board.new.board(name)
    ids = {key: card for key, card in (await board.cards.keys(name)).items() if key.startswith(KEY)}
    fresh, skipped = dict[str, Issue](), list(wrong)
    for issue in issues:
        if issue.id in fresh:
            skipped.append(f"{issue.id} is there twice: its first line counts.")
        elif f"{KEY}{issue.id}" not in ids:
            fresh[issue.id] = issue
    blockers = {issue.id: await _blockers(board, issue, fresh, ids, skipped) for issue in fresh.values()}
    order = ordered(blockers, skipped)
    if apply:
        cards = [(_card(fresh[one], name, by), [f"{KEY}{each}" for each in blockers[one]]) for one in order]
        await board.cards.create_all(cards, ids, by.name)
    more = [f"... and {len(skipped) - MOST_SKIPPED} more."] if len(skipped) > MOST_SKIPPED else []
    return Plan(
        new=len(fresh),
        known=len({issue.id for issue in issues} - fresh.keys()),
        links=sum(map(len, blockers.values())),
        skipped=(*skipped[:MOST_SKIPPED], *more),
        applied=apply,
    )


async def _blockers(
    board: Board, issue: Issue, fresh: Mapping[str, Issue], ids: Mapping[str, str], skipped: list[str]
) -> list[str]:
    """The issues that a new card can wait for; what it cannot is noted as skipped."""
    found = list[str]()
    for each in dict.fromkeys(issue.blockers):
        there = ids.get(f"{KEY}{each}")
        if each not in fresh and there is None:
            skipped.append(f"{issue.id} waits for {each}, which is not there.")
        elif there and (status := (await board.cards.get(there)).status) in (Status.ARCHIVED, Status.CANCELLED):
            skipped.append(f"{issue.id} does not wait for {each}: {there} is {status}.")
        else:
            found.append(each)
    return found


def ordered(blockers: Mapping[str, list[str]], skipped: list[str]) -> list[str]:
    """The issues, each after those that it waits for. A link that closes a circle is taken out, and noted as
    skipped."""
    done, open_, order = set[str](), dict[str, list[str]](), list[str]()
    for root in blockers:
        if root not in done:
            open_[root] = list(blockers[root])
        while open_:
            one, left = next(reversed(open_.items()))
            if not left:
                del open_[one]
                done.add(one)
                order.append(one)
                continue
            each = left.pop()
            if each in open_:
                blockers[one].remove(each)
                skipped.append(f"{one} does not wait for {each}: that would be a circle.")
            elif each in blockers and each not in done:
                open_[each] = list(blockers[each])
    return order


async def exported(board: Board, name: str) -> str:
    """The cards of a board as issues, one line each: what beads said of an issue stays unless the card changed it."""
    cards = await board.cards.whole(name)
    ids = {card.id: card.key.removeprefix(KEY) if card.key.startswith(KEY) else card.id for card in cards}
    parents: dict[str, list[str]] = {}
    for parent, child in await board.cards.links(name):
        parents.setdefault(child, []).append(parent)
    lines = [_issue(card, ids, parents.get(card.id, [])) for card in sorted(cards, key=lambda each: ids[each.id])]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


def _card(issue: Issue, board: str, by: By) -> Card:
    closed = issue.status == "closed"
    return Card(
        id="",
        board=board,
        title=" ".join(issue.title.split())[:LONGEST_TITLE] or issue.id,
        body=(issue.description or "")[:LONGEST_BODY],
        status=Status.DONE if closed else Status.TRIAGE,
        done=closed,
        ended=(issue.closed_at.timestamp() if issue.closed_at else 0.0) if closed else None,
        summary=issue.close_reason or "",
        priority=min(PRIORITIES, max(0, 2 if issue.priority is None else issue.priority)),
        created_by=by.name,
        origin=origin_of(by),
        key=f"{KEY}{issue.id}",
        imported=issue.line,
    )


def _facts(card: Card) -> dict[str, Any]:
    """What beads is told of a card."""
    status = STATUS.get(card.status, "open")
    return {"title": card.title, "description": card.body, "status": status, "priority": card.priority}


def _issue(card: Card, ids: Mapping[str, str], parents: Sequence[str]) -> dict[str, Any]:
    line: dict[str, Any] = {
        "_type": "issue",
        "id": ids[card.id],
        "issue_type": "task",
        "created_at": _time(card.created),
    }
    then: dict[str, Any] = {}
    if card.imported:
        line, was = json.loads(card.imported), msgspec.json.decode(card.imported, type=Issue)
        then = _facts(_card(was, card.board, By(name="", role=Role.BOARD)))
    changed = {name: value for name, value in _facts(card).items() if name not in then or then[name] != value}
    line |= changed
    if changed.get("status") == "closed":
        line |= {"closed_at": _time(card.ended or card.created), "close_reason": card.summary}
    wanted, known = {ids[parent] for parent in parents}, set(ids.values())
    before = line.get("dependencies") or []
    kept = [each for each in before if not _is_gone(each, wanted, known)]
    had = {each["depends_on_id"] for each in kept if each.get("type", BLOCKS) == BLOCKS}
    kept += [{"issue_id": line["id"], "depends_on_id": each, "type": BLOCKS} for each in sorted(wanted - had)]
    return {**line, "dependencies": kept} if kept or "dependencies" in line else line


def _is_gone(link: Mapping[str, Any], wanted: Collection[str], known: Collection[str]) -> bool:
    """Whether a link that the issue had was taken away here."""
    target = link.get("depends_on_id")
    return link.get("type", BLOCKS) == BLOCKS and target in known and target not in wanted


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
