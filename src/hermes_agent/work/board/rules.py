"""The rules of the board: one pure function that moves a card, and who may do what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, LostLease
from hermes_agent.store.work.board import unknown
from hermes_agent.store.work.cards import HUMAN, Card, Ending, Reason, Status

MAX_CRASHES = 5
"""So often a card's process may die of the machine before the card is given to a person."""
MAX_CHECKS = 3
"""So often a check may die without a receipt."""
COOL_DOWN = 300.0
"""Seconds that a card rests whose model was asked too often."""
SAME_BLOCK = 2
"""A card that is blocked for the same reason more often in a row goes back to triage."""


class NotMoved(HermesError):
    """A card does not move that way; the sentence says why."""


class Role(StrEnum):
    """Who acts on a card: the owner, a member, an agent in a conversation, an agent that works on a card, or the board
    itself (its dispatcher)."""

    OWNER = "owner"
    MEMBER = "member"
    AGENT = "agent"
    WORKER = "worker"
    BOARD = "board"


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """An actor: its name in events, its role, whether it acts for the owner (`sees_all`), whether its words may be
    outside ones (`tainted`), the folder that it works in, and for a worker its card, its lease and the person for whom
    it works (`whose`; any other works for itself)."""

    name: str
    role: Role
    sees_all: bool = False
    tainted: bool = False
    folder: str = ""
    whose: str = ""
    card: str = ""
    owner: str = ""
    epoch: int = 0

    @property
    def is_person(self) -> bool:
        """Whether a person acts."""
        return self.role in (Role.OWNER, Role.MEMBER)


class Verb(StrEnum):
    """What can be done to where a card stands."""

    ASSIGN = "assign"
    MOVE = "move"
    START = "start"
    CLAIM = "claim"
    ADOPT = "adopt"
    COMPLETE = "complete"
    BLOCK = "block"
    UNBLOCK = "unblock"
    END = "end"
    RECEIPT = "receipt"
    CANCEL = "cancel"
    ARCHIVE = "archive"
    PROMOTE = "promote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One verb with what it needs: the `status` to move to, the `assignee`, the `reason` and card (`on`) of a block,
    the `ending` of a process, the exit `code` of a check, the summary and metadata of what is complete."""

    verb: Verb
    status: Status = Status.READY
    assignee: str = ""
    reason: Reason = Reason.NEEDS_INPUT
    on: str = ""
    until: float = 0.0
    ending: Ending = Ending.CRASHED
    code: int = 0
    summary: str = ""
    metadata: str = ""


S = Status
OPEN = frozenset({S.TRIAGE, S.TODO, S.READY, S.RUNNING, S.BLOCKED, S.REVIEW})
FROM: dict[Verb, frozenset[Status]] = {
    Verb.ASSIGN: OPEN - {S.RUNNING},
    Verb.MOVE: OPEN,
    Verb.START: OPEN - {S.RUNNING, S.REVIEW},
    Verb.CLAIM: frozenset({S.READY, S.REVIEW, S.TRIAGE}),
    Verb.ADOPT: frozenset({S.RUNNING, S.REVIEW, S.TRIAGE}),
    Verb.COMPLETE: OPEN,
    Verb.BLOCK: OPEN - {S.BLOCKED},
    Verb.UNBLOCK: frozenset({S.BLOCKED}),
    Verb.END: frozenset({S.RUNNING, S.REVIEW, S.TRIAGE}),
    Verb.RECEIPT: frozenset({S.REVIEW}),
    Verb.CANCEL: OPEN,
    Verb.ARCHIVE: frozenset({S.DONE, S.CANCELLED}),
    Verb.PROMOTE: frozenset({S.TODO, S.BLOCKED}),
}
"""From where each verb leads."""
HELD = frozenset({Verb.ADOPT, Verb.COMPLETE, Verb.BLOCK})
OF_BOARD = frozenset({Verb.CLAIM, Verb.END, Verb.RECEIPT, Verb.PROMOTE})


def moved(card: Card, order: Order, by: By, now: float) -> Card:
    """The card after this. Nothing else changes where a card stands. Raises `NotMoved`, and `LostLease` for a worker
    whose claim is another's now."""
    check_right(card, order.verb, by)
    if card.status not in FROM[order.verb]:
        raise NotMoved(f"{card.id} is {card.status}: it cannot be changed by {order.verb}.")
    if by.role is Role.WORKER and by.card == card.id:
        check_lease(card, by)
    after = ACTS[order.verb](card, order, by, now)
    if after.status is not S.BLOCKED:
        after = replace(after, blocked=None, blocked_on="")
    since = now if order.verb is Verb.ARCHIVE else after.ended or now
    return replace(after, ended=None if after.is_open else since)


def check_right(card: Card, verb: Verb | str, by: By) -> None:
    """Raise `NotMoved` where this actor may not do that to this card."""
    own = by.card == card.id
    if by.role is Role.WORKER and own and verb not in HELD:
        raise NotMoved(f"{card.id} is your own card: complete it or block it; the rest is for others.")
    if by.role is Role.WORKER and not own and card.created_by != by.card:
        raise NotMoved(f"{card.id} is not yours: comment on it, or create a card of your own.")
    if by.role in (Role.MEMBER, Role.AGENT) and not may_see(card, by):
        raise unknown(card.id)
    if verb in OF_BOARD and by.role is not Role.BOARD:
        raise NotMoved(f"Only the dispatcher does that: {verb}.")


def may_see(card: Card, by: By) -> bool:
    """Whether this actor may read a card: who is not the owner reads their own."""
    return by.sees_all or by.role is Role.BOARD or card.person == (by.whose or by.name)


def check_lease(card: Card, by: By) -> None:
    """Raise `LostLease` unless this worker holds the card."""
    if not by.owner or (card.owner, card.epoch) != (by.owner, by.epoch):
        raise LostLease(f"{card.id} is not yours any more: another worker has it, or it was moved. Stop.")


def _assigned(card: Card) -> Card:
    return settled(free(card)) if card.status is S.TRIAGE else card


def _claim(card: Card, _order: Order, by: By, now: float) -> Card:
    status = S.RUNNING if card.status is S.READY else card.status
    return replace(card, status=status, owner=by.owner, epoch=card.epoch + 1, started=card.started or now, ready_at=0.0)


def _promote(card: Card, _order: Order, _by: By, _now: float) -> Card:
    waits = card.status is S.TODO or card.blocked is Reason.DEPENDENCY
    return settled(card) if waits and not card.parents_left else card


def settled(card: Card) -> Card:
    """The card ready, or waiting for its parents."""
    status = S.TODO if card.parents_left else S.READY
    return replace(card, status=status, blocked=None, blocked_on="", ready_at=0.0)


def free(card: Card) -> Card:
    """The card without a holder; whoever held it writes nothing more."""
    return replace(card, owner="", epoch=card.epoch + 1) if card.owner else card


def failed(card: Card) -> Card:
    """The card after one more failure of its own: ready again, or a person's where it had all its attempts."""
    card = replace(card, attempts=card.attempts + 1)
    if card.attempts >= card.max_attempts:
        return replace(card, status=S.BLOCKED, blocked=Reason.FAILED, ready_at=0.0)
    return settled(card)


def _end(card: Card, order: Order, _by: By, now: float) -> Card:
    """The card after its process ended without moving it. In review and triage it stays there."""
    there, card = card.status, free(card)
    match order.ending:
        case Ending.RATE_LIMITED:
            card = replace(card, status=S.READY if there is S.RUNNING else there, ready_at=now + COOL_DOWN)
        case Ending.TIMED_OUT | Ending.GAVE_UP:
            card = failed(card)
        case _:
            card = replace(card, crashes=card.crashes + 1)
            if card.crashes >= (MAX_CHECKS if there is S.REVIEW else MAX_CRASHES):
                return replace(card, status=S.BLOCKED, blocked=Reason.FAILED)
            card = settled(card)
    return card if there is S.RUNNING or card.status is S.BLOCKED else replace(card, status=there)


def _move(card: Card, order: Order, by: By, _now: float) -> Card:
    status = S.READY if order.verb is Verb.START else order.status
    if status not in (S.TRIAGE, S.TODO, S.READY):
        raise NotMoved(f"A card is moved to triage, todo or ready; {status} is reached by working on it.")
    if card.status is S.BLOCKED and not _may_unblock(card, by):
        raise NotMoved(_only_a_person(card))
    if status is S.READY and card.parents_left:
        raise NotMoved(f"{card.id} waits for {card.parents_left} other card(s): see `hermes kanban show {card.id}`.")
    fresh = by.is_person and card.status is S.BLOCKED
    card = replace(card, attempts=0, crashes=0) if fresh else card
    return replace(free(card), status=status, blocked=None, blocked_on="", ready_at=0.0)


def _complete(card: Card, order: Order, by: By, _now: float) -> Card:
    reviews = card.owner and card.status is S.REVIEW
    new = card if reviews else replace(card, summary=order.summary, metadata=order.metadata or card.metadata)
    if card.owner and by.card == card.id:
        if card.status is S.TRIAGE:  # It was divided into smaller cards, which it waits for.
            return settled(free(new))
        if card.status is S.RUNNING and card.validator:
            return replace(free(new), status=S.REVIEW, crashes=0)
        return _done(new)
    if card.owner:
        raise NotMoved(f"{card.id} is being worked on: wait, or `hermes kanban move {card.id} todo` stops it.")
    if not by.is_person:
        raise NotMoved(f"{card.id}: who does not work on a card does not complete it; a person may.")
    if card.parents_left:
        raise NotMoved(f"{card.id} waits for {card.parents_left} other card(s), which are not done.")
    if card.validator and card.validator != HUMAN:
        raise NotMoved(f"{card.id} is done when its check passes: `hermes kanban update` takes the check away.")
    return _done(new)


def _done(card: Card) -> Card:
    return replace(free(card), status=S.DONE, done=True, blocked=None, blocked_on="", was_blocked=None, reblocks=0)


def _block(card: Card, order: Order, by: By, _now: float) -> Card:
    own = by.card == card.id
    if card.owner and not own and by.role is not Role.BOARD:
        raise NotMoved(f"{card.id} is being worked on: `hermes kanban move {card.id} todo` stops it.")
    if card.status is S.REVIEW and own:  # The reviewer refuses it.
        return failed(free(card))
    again = card.reblocks + 1 if card.was_blocked is order.reason else 1
    card = replace(free(card), was_blocked=order.reason, reblocks=again)
    if again > SAME_BLOCK and order.reason is not Reason.DEPENDENCY:
        return replace(card, status=S.TRIAGE, was_blocked=None, reblocks=0)
    return replace(
        card,
        status=S.BLOCKED,
        blocked=order.reason,
        blocked_on=order.on,
        ready_at=order.until if order.reason is Reason.TRANSIENT else 0.0,
    )


def _may_unblock(card: Card, by: By) -> bool:
    if by.role is Role.BOARD:
        return card.blocked in (Reason.TRANSIENT, Reason.DEPENDENCY)
    return by.is_person or card.blocked is Reason.TRANSIENT


def _only_a_person(card: Card) -> str:
    return f"{card.id} is blocked ({card.blocked}): only a person unblocks it, with `hermes kanban unblock {card.id}`."


def _unblock(card: Card, _order: Order, by: By, _now: float) -> Card:
    if not _may_unblock(card, by):
        raise NotMoved(_only_a_person(card))
    return settled(replace(card, attempts=0, crashes=0) if by.is_person else card)


ACTS: Mapping[Verb, Callable[[Card, Order, By, float], Card]] = {
    Verb.ASSIGN: lambda card, order, _by, _now: _assigned(replace(card, assignee=order.assignee)),
    Verb.MOVE: _move,
    Verb.START: _move,
    Verb.CLAIM: _claim,
    Verb.ADOPT: lambda card, _order, by, _now: replace(card, owner=by.owner, epoch=card.epoch + 1),
    Verb.COMPLETE: _complete,
    Verb.BLOCK: _block,
    Verb.UNBLOCK: _unblock,
    Verb.END: _end,
    Verb.RECEIPT: lambda card, order, _by, _now: failed(free(card)) if order.code else _done(card),
    Verb.CANCEL: lambda card, _order, _by, _now: replace(free(card), status=S.CANCELLED),
    Verb.ARCHIVE: lambda card, _order, _by, _now: replace(card, status=S.ARCHIVED),
    Verb.PROMOTE: _promote,
}
"""What each verb makes of a card from which it leads."""
