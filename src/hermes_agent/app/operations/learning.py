"""Operations on learning: list, explain and undo lessons, run reviews, and manage the skill curator. Owner only."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hermes_agent.app.operations.access import Access, Kind, Noun, option, place, verb
from hermes_agent.app.operations.skills import pin_skill
from hermes_agent.core.clock import moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.learning.curator.report import Run, summary
from hermes_agent.learning.learned import Learned, line_of, stats_lines, together_with
from hermes_agent.learning.proposing import title_of

if TYPE_CHECKING:
    from hermes_agent.app.learning.curating import Curating
    from hermes_agent.app.system import System
    from hermes_agent.store.versions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRow:
    """A row in the list of lessons: an applied change (id `12`: author, what it undoes, cost in US dollars) or a
    pending proposal (id `p3`: reason, outside sources, expiry)."""

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
    """The ledger of learned changes. Raises `HermesError` unless the owner asks."""
    access.check_owner("Only the owner may see and change lessons.")
    return access.system.learner.work.learned


async def list_learned(access: Access[System], limit: int = 200) -> list[LearnedRow]:
    """Pending proposals, then the newest changes."""
    found = learned(access)
    await found.undoing.notice()
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


async def explain_turn(access: Access[System], turn: int, session: str = "") -> list[str]:
    """Show which lessons a turn used, in this conversation or the latest. Raises `HermesError`."""
    found, sessions = learned(access), access.system.store.sessions
    if named := session or access.session:
        return await found.why((await sessions.find(named)).id, turn)
    return await found.why(next((record.id for record in await sessions.list(limit=1)), ""), turn)


async def review_now(access: Access[System]) -> list[str]:
    """Run the queued reviews. Returns a line for each result."""
    learned(access)
    done = await access.system.learner.run()
    jobs = (await access.system.store.learning.list(limit=done))[::-1] if done else []
    told = [f"{job.kind.value} of {job.session}: {job.account.note}" for job in jobs if job.account.note]
    return told or ["No review is queued."]


def curator(access: Access[System]) -> Curating:
    """The skill curator. Raises `HermesError` unless the owner asks."""
    access.check_owner("Only the owner may manage the skills of this home.")
    return access.system.learner.work.curating


async def run_curator(access: Access[System], dry_run: bool = False) -> Run:
    """Run a curator pass now and return its report. Raises `HermesError`."""
    return await curator(access).run(look=dry_run)


async def pause_curator(access: Access[System], paused: bool) -> str:
    """Pause automatic passes, or resume them."""
    await curator(access).pause(paused)
    return "The curator is paused." if paused else "The curator runs again."


async def restore_curated(access: Access[System], name: str) -> str:
    """Restore an archived skill. Raises `HermesError`."""
    await curator(access).restore(name)
    return f"`{name}` is back."


async def report_passes(access: Access[System], name: str = "", listed: bool = False) -> Run | list[Run]:
    """The report of a pass (empty: the newest), or all passes. Raises `HermesError`."""
    return await curator(access).runs() if listed else await curator(access).one(name)


def report_text(found: Run | list[Run]) -> str:
    """Format a report, or a line for each pass."""
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
    short_help="List, approve and undo lessons.",
    help="List, approve and undo lessons: changes by number (`12`), proposals by name (`p3`).",
    verbs=(
        verb(
            "log",
            "List open proposals, then the newest changes.",
            list_learned,
            option("limit", "--limit", "Most changes to list.", Kind.COUNT, 20),
            text=lambda rows: "\n".join(row.text for row in rows) or "There are no lessons yet.",
        ),
        verb(
            "show",
            "Show a change or proposal: author, cited messages, cost and text.",
            lambda access, name: learned(access).show(name),
            ID,
        ),
        verb(
            "diff",
            "Show the diff of a change or proposal.",
            lambda access, name: learned(access).diff(name),
            ID,
        ),
        verb(
            "undo",
            "Undo a change, to the byte if nothing came after it. Without an ID: the newest change by the agent.",
            lambda access, name: learned(access).undo(name, access.who.key),
            replace(ID, default=""),
        ),
        verb(
            "why",
            "Show which lessons a turn used.",
            explain_turn,
            place("turn", Kind.NUMBER),
            option("session", "--session", "The session; by default the latest.", Kind.TEXT, ""),
            text="\n".join,
        ),
        verb(
            "approve",
            "Approve a proposal: it becomes live, on top of later changes.",
            lambda access, name: learned(access).approve(name),
            ID,
        ),
        verb(
            "adopt",
            "Make a skill or notes file yours that was changed outside.",
            lambda access, name: learned(access).adopt(name, access.who.key),
            place("name"),
        ),
        verb("reject", "Reject a proposal.", lambda access, name: learned(access).reject(name), ID),
        verb(
            "stats",
            "Show the cost and results of learning.",
            lambda access, since: learned(access).brought(since),
            option("since", "--since", "Only since then: 24h, 7d, or a date.", Kind.SINCE, 0.0),
            text=lambda found: "\n".join(stats_lines(found)),
        ),
        verb("review", "Run the queued reviews now.", review_now, text="\n".join),
    ),
)
CURATED = Noun(
    name="curator",
    short_help="Archive, merge and repair the skills that the agent made.",
    help="Archive unused skills of the agent, merge overlapping ones and repair bad ones. Your own and pinned skills "
    "stay as they are. Nothing is deleted, and every pass can be undone.",
    verbs=(
        verb(
            "status",
            "Show when the next pass is due, and how old and how good each skill is.",
            lambda access: curator(access).status(),
            text=lambda found: "\n".join(found.lines),
        ),
        verb(
            "run",
            "Run a pass now. The first one only reports.",
            run_curator,
            option("dry_run", "--dry-run", "Report what a pass would do, and change nothing."),
            text=lambda run: run.summary,
        ),
        verb(
            "look",
            "Report what a pass would do, and change nothing.",
            partial(run_curator, dry_run=True),
            text=lambda run: run.summary,
        ),
        verb("pause", "Pause automatic passes; `run` still works.", partial(pause_curator, paused=True)),
        verb("resume", "Resume automatic passes.", partial(pause_curator, paused=False)),
        verb("pin", "Pin a skill: the curator leaves it alone, and every new prompt names it.", pin_skill, SKILL),
        verb("unpin", "Unpin a skill.", partial(pin_skill, off=True), SKILL),
        verb("restore", "Restore an archived skill; its age starts again.", restore_curated, place("name")),
        verb(
            "rollback",
            "Undo a pass, by default the newest that changed something: every skill as it was, to the byte. Later "
            "changes stay.",
            lambda access, name: curator(access).rollback(name),
            PASS,
            text="\n".join,
        ),
        verb(
            "report",
            "Show the report of a pass; without a name, of the newest.",
            report_passes,
            PASS,
            option("listed", "--list", "List the passes instead."),
            text=report_text,
        ),
    ),
)
