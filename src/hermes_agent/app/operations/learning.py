"""What was learned, from what, what waits, and taking it back; and the upkeep of skills. For the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.core.dataclass import dataclass

if TYPE_CHECKING:
    from hermes_agent.app.learning.curating import Curating
    from hermes_agent.app.operations.access import Access, System
    from hermes_agent.learning.learned import Learned


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that is live: `undoes` names the one that it takes back; `cost` in US dollars."""

    id: str
    at: float
    kind: str
    item: str
    action: str
    author: str
    session: str
    undoes: int | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A change that waits for a yes: why, what in it is from outside (`taint`), and until when."""

    id: str
    at: float
    kind: str
    item: str
    action: str
    why: str
    taint: str
    session: str
    expires: float


def learned(access: Access[System]) -> Learned:
    """The ledger of what was learned. Raises `HermesError` for anybody but the owner."""
    access.check_owner("What was learned is the owner's to see and to change.")
    return access.system.learner.learned


async def list_learned(access: Access[System], limit: int) -> list[Waiting | Change]:
    """What waits, then the newest changes."""
    found = learned(access)
    waiting = [
        Waiting(
            id=each.name,
            at=each.at,
            kind=each.kind.value,
            item=each.item,
            action=each.action,
            why=each.why.value,
            taint=each.taint,
            session=each.session,
            expires=each.expires,
        )
        for each in await found.waiting()
    ]
    changes = [
        Change(
            id=str(version.id),
            at=change.at,
            kind=change.kind.value,
            item=change.item,
            action=change.action,
            author=change.author.value,
            session=change.session,
            undoes=change.undoes,
            cost=change.cost,
        )
        for version in await found.versions(limit)
        for change in [version.change]
    ]
    return [*waiting, *changes]


async def explain_turn(access: Access[System], turn: int, session: str = "") -> list[str]:
    """What that was learned a turn of a conversation, by default of the latest, went by. Raises `HermesError`."""
    found, sessions = learned(access), access.system.store.sessions
    record = await sessions.find(session) if session else next(iter(await sessions.list(limit=1)), None)
    return await found.why(record.id if record else "", turn)


async def review_now(access: Access[System]) -> list[str]:
    """Review the conversations that are in line; what came of each."""
    learned(access)
    done = await access.system.learner.run()
    jobs = (await access.system.store.learning.list(limit=done))[::-1] if done else []
    told = [f"{job.kind.value} of {job.session}: {job.account.note}" for job in jobs if job.account.note]
    return told or ["Nothing is in line."]


def curator(access: Access[System]) -> Curating:
    """The upkeep of the skills that the agent made. Raises `HermesError` for anybody but the owner."""
    access.check_owner("The skills of this home are the owner's to look after.")
    return access.system.learner.curating
