"""What was learned, from what, what waits, and taking it back; and the upkeep of skills. For the owner."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hermes_agent.app.operations.skills import pin_skill
from hermes_agent.app.operations.verbs import Kind, Noun, option, place, verb
from hermes_agent.core.clock import moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.learning.curator.report import Run, summary
from hermes_agent.learning.learned import line_of, stats_lines, together_with
from hermes_agent.learning.proposing import title_of

if TYPE_CHECKING:
    from hermes_agent.app.learning.curating import Curating
    from hermes_agent.app.operations.access import Access
    from hermes_agent.app.system import System
    from hermes_agent.learning.learned import Learned
    from hermes_agent.store.versions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRow:
    """A change that is live (`12`: by whom, which one it takes back, its cost in US dollars), or one that waits for a
    yes (`p3`: why, what in it is from outside, and until when)."""

    id: str
    at: float
    kind: str
    item: str
    action: str
    session: str
    text: str
    author: str = ""
    undoes: int | None = None
    cost: float | None = None
    why: str = ""
    taint: str = ""
    expires: float = 0.0


def learned(access: Access[System]) -> Learned:
    """The ledger of what was learned. Raises `HermesError` for anybody but the owner."""
    access.check_owner("What was learned is the owner's to see and to change.")
    return access.system.learner.learned


async def list_learned(access: Access[System], limit: int) -> list[LearnedRow]:
    """What waits, then the newest changes."""
    found = learned(access)
    proposals = await found.waiting()
    waiting = [
        LearnedRow(
            id=each.name,
            at=each.at,
            kind=each.kind.value,
            item=each.item,
            action=each.action,
            session=each.session,
            text=title_of(each, together_with(each, proposals)),
            why=each.why.value,
            taint=each.taint,
            expires=each.expires,
        )
        for each in proposals
    ]
    return waiting + [_row(version) for version in await found.versions(limit)]


def _row(version: Version) -> LearnedRow:
    change = version.change
    return LearnedRow(
        id=str(version.id),
        at=change.at,
        kind=change.kind.value,
        item=change.item,
        action=change.action,
        session=change.session,
        text=line_of(version),
        author=change.author.value,
        undoes=change.undoes,
        cost=change.cost,
    )


async def undo_learned(access: Access[System], name: str = "") -> str:
    """Take a change back, the newest that no person made without a name; what was done. Raises `HermesError`."""
    return await learned(access).undo(name, access.who.key)


async def explain_turn(access: Access[System], turn: int, session: str = "") -> list[str]:
    """What that was learned a turn of a conversation went by: of this one, or of the latest. Raises `HermesError`."""
    found, sessions = learned(access), access.system.store.sessions
    if named := session or access.session:
        return await found.why((await sessions.find(named)).id, turn)
    return await found.why(next((record.id for record in await sessions.list(limit=1)), ""), turn)


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


async def run_curator(access: Access[System], dry_run: bool = False) -> Run:
    """A pass now; what came of it. Raises `HermesError`."""
    return await curator(access).run(look=dry_run)


async def pause_curator(access: Access[System], paused: bool) -> str:
    """Begin no pass by itself from now on, or again."""
    await curator(access).pause(paused)
    return "The curator is paused." if paused else "The curator goes on."


async def restore_curated(access: Access[System], name: str) -> str:
    """Bring back a skill that was put aside. Raises `HermesError`."""
    await curator(access).restore(name)
    return f"`{name}` is back."


async def report_passes(access: Access[System], name: str = "", listed: bool = False) -> Run | list[Run]:
    """What a pass did, the newest without a name; or all passes. Raises `HermesError`."""
    return await curator(access).runs() if listed else await curator(access).one(name)


def report_text(found: Run | list[Run]) -> str:
    """A report, or a line for each pass."""
    if isinstance(found, Run):
        return found.text.rstrip("\n")
    kinds = ["rolled back" if each.rolled_back else "looked" if each.looks else "did" for each in found]
    told = zip(found, kinds, strict=True)
    lines = [f"{each.id}  {moment(each.began)}  {kind}  {summary(each)}" for each, kind in told]
    return "\n".join(lines) or "No pass has ended yet."


ID = place("name", metavar="ID")
SKILL = place("name", Kind.SKILL)
PASS = place("name", default="", metavar="PASS")
LEARNED = Noun(
    name="learn",
    short_help="See, judge and take back what was learned.",
    help="See, judge and take back what was learned: changes by number (`12`), what waits by name (`p3`).",
    verbs=(
        verb(
            "log",
            "List what waits, then the newest changes.",
            list_learned,
            option("limit", "--limit", "So many changes at most.", Kind.COUNT, 20),
            text=lambda rows: "\n".join(row.text for row in rows) or "Nothing was learned yet.",
        ),
        verb(
            "show",
            "Show a change, or what waits, whole: who, from which messages, at what cost, and the words.",
            lambda access, name: learned(access).show(name),
            ID,
        ),
        verb(
            "diff",
            "Show what a change changed, or what waits would write.",
            lambda access, name: learned(access).diff(name),
            ID,
        ),
        verb(
            "undo",
            "Take a change back: to the byte where nothing came after it. Without an ID, the newest that no "
            "person made.",
            undo_learned,
            replace(ID, default=""),
        ),
        verb(
            "why",
            "Say what that was learned a turn of a conversation went by.",
            explain_turn,
            place("turn", Kind.NUMBER),
            option("session", "--session", "Of this conversation instead of the latest.", Kind.TEXT, ""),
            text="\n".join,
        ),
        verb(
            "approve",
            "Say yes to what waits: it is live, on top of what came since.",
            lambda access, name: learned(access).approve(name),
            ID,
        ),
        verb("reject", "Say no to what waits.", lambda access, name: learned(access).reject(name), ID),
        verb(
            "stats",
            "Show what learning used and what it brought.",
            lambda access, since: learned(access).brought(since),
            option("since", "--since", "Only since then: 24h, 7d, or a date.", Kind.SINCE, 0.0),
            text=lambda found: "\n".join(stats_lines(found)),
        ),
        verb("review", "Review the conversations that are in line, now.", review_now, text="\n".join),
    ),
)
CURATED = Noun(
    name="curator",
    short_help="Look after the skills that the agent made.",
    help="Look after the skills that the agent made: what nobody uses is put aside, what overlaps is joined, what is "
    "bad is mended. What you wrote or pinned is left alone, nothing is deleted, and every pass can be taken back.",
    verbs=(
        verb(
            "status",
            "Show when the next pass is due, and how old and how good each skill is.",
            lambda access: curator(access).status(),
            text=lambda found: "\n".join(found.lines),
        ),
        verb(
            "run",
            "Begin a pass now. The first one ever only looks.",
            run_curator,
            option("dry_run", "--dry-run", "Only look: report what a pass would do."),
            text=lambda run: run.summary,
        ),
        verb(
            "look",
            "Only look: report what a pass would do.",
            partial(run_curator, dry_run=True),
            text=lambda run: run.summary,
        ),
        verb("pause", "Begin no pass until `resume`; `run` still does.", partial(pause_curator, paused=True)),
        verb("resume", "Let passes begin by themselves again.", partial(pause_curator, paused=False)),
        verb("pin", "Leave a skill alone, and name it in every new prompt.", pin_skill, SKILL),
        verb("unpin", "Take the pin off a skill.", partial(pin_skill, off=True), SKILL),
        verb("restore", "Bring back a skill that was put aside; its age counts anew.", restore_curated, place("name")),
        verb(
            "rollback",
            "Take back a pass, the newest that changed something: every skill as it was, to the byte. What "
            "somebody changed since stays.",
            lambda access, name: curator(access).rollback(name),
            PASS,
            text="\n".join,
        ),
        verb(
            "report",
            "Show what a pass did, the newest without a name; made from what changed.",
            report_passes,
            PASS,
            option("listed", "--list", "List the passes instead."),
            text=report_text,
        ),
    ),
)
