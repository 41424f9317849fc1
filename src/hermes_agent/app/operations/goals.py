"""Operations on goals: set, list, show, change and check them. A person sees their own; the owner sees all."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from hermes_agent.app.operations.access import Access, Noun, option, place, verb
from hermes_agent.app.work import GOALS, whose
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.section import short_hash
from hermes_agent.core.spending import NANO, Scope
from hermes_agent.host.tasks import spawn
from hermes_agent.store.work.goals import Check, Criterion, Goal, Kind, State
from hermes_agent.work.goals.checks import proof_in
from hermes_agent.work.goals.desk import Whose, Wish, criterion_of, moment_of

if TYPE_CHECKING:
    from hermes_agent.app.system import System
    from hermes_agent.app.work.goals import GoalWork
    from hermes_agent.store.sessions import Session as SessionRecord

__all__ = ("Criterion", "State", "Wish", "criterion_of", "proof_in")

ELSEWHERE = "Goals are a private matter: write to me alone, or use `hermes goals`."


class GoalFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A goal as people and programs see it. `spent` and `budget` are US dollars, `checks` the newest receipts; `met`:
    whether its criteria hold."""

    id: str
    state: str
    text: str
    why: str
    criteria: tuple[str, ...]
    constraints: tuple[str, ...]
    session: str
    folder: str
    turns: int
    max_turns: int
    spent: float
    tokens: int
    budget: float | None
    created: float
    ended: float | None
    checks: tuple[Check, ...] = ()
    met: bool = False
    object: Literal["goal"] = "goal"

    @property
    def line(self) -> str:
        """One line."""
        return f"{self.id}  {self.state}  turn {self.turns} of {self.max_turns}  ${self.spent:.2f}  {self.text[:80]}"


def work_of(access: Access[System]) -> GoalWork:
    """The goals of the process. Raises `HermesError` for guests, and where others read along."""
    if access.who.standing is Standing.GUEST:
        raise HermesError("Guests have no goals.")
    if access.where is not None and not access.where.is_private:
        raise HermesError(ELSEWHERE)
    if access.system.has_cassette:
        raise HermesError("A process that is recorded or replayed pursues no goals.")
    work: GoalWork = access.system.snapshots.now.needs.made(GOALS)
    return work


def _who(access: Access[System]) -> Whose:
    key = whose(access.system.standings, access.who.key)
    return Whose(key=key, principal=access.who.key, sees_all=access.sees_all)


async def _facts(access: Access[System], goal: Goal, checks: tuple[Check, ...] = (), *, met: bool = False) -> GoalFacts:
    spent = await access.system.store.usage.spent(Scope.JOB, (goal.job,))
    return GoalFacts(
        id=goal.id,
        state=goal.state,
        text=goal.text,
        why=goal.why,
        criteria=tuple(map(str, goal.criteria)),
        constraints=goal.constraints,
        session=goal.session,
        folder=goal.folder,
        turns=goal.turns,
        max_turns=goal.max_turns,
        spent=spent.money / NANO,
        tokens=spent.tokens,
        budget=None if goal.money is None else goal.money / NANO,
        created=goal.created,
        ended=goal.ended,
        checks=checks,
        met=met or goal.state is State.DONE,
    )


async def _record(access: Access[System], session: str) -> SessionRecord | None:
    """The session that shall pursue a goal; one's own."""
    record = await access.system.store.sessions.get(session) if session else None
    if record is not None and not (access.sees_all or record.principal == access.who.key):
        record = None
    if session and record is None:
        raise HermesError(f"There is no session {session} of yours.")
    if record is not None and not Conversation.parse(record.conversation).is_private:
        raise HermesError(ELSEWHERE)
    return record


async def set_goal(access: Access[System], wish: Wish, session: str = "") -> GoalFacts:
    """Set a goal, which that session pursues (empty: it is only written down). Its commands are checked once before."""
    work, record = work_of(access), await _record(access, session or access.session)
    folder = record.workspace if record is not None else access.folder
    made = await work.desk.create(_who(access), wish, record, folder)
    if record is not None and not (wish.criteria or wish.later):
        spawn(work.ask_for_proof(made.goal, record), name=f"ask for a proof of {made.goal.id}")
    return await _facts(access, made.goal, made.checks)


async def list_goals(access: Access[System], ended: bool = False) -> list[GoalFacts]:
    """The open goals, or all."""
    work_of(access)
    who = _who(access)
    found = await access.system.store.goals.list("" if who.sees_all else who.key, ended=ended)
    return [await _facts(access, goal) for goal in found]


async def show_goal(access: Access[System], name: str = "") -> GoalFacts:
    """One goal with its receipts; by default the one of the session, else the one changed last."""
    goal = await _find(access, name)
    return await _facts(access, goal, tuple(await access.system.store.goals.receipts(goal.id)))


async def _find(access: Access[System], name: str) -> Goal:
    return await work_of(access).desk.find(_who(access), name, access.session)


async def stop_goal(access: Access[System], name: str = "", state: State = State.DROPPED) -> GoalFacts:
    """Pause a goal until it is resumed (a run under way ends by itself), or end it by hand: done, or not wanted."""
    return await _facts(access, await work_of(access).desk.stop(await _find(access, name), state))


async def resume_goal(
    access: Access[System], name: str = "", turns: int | None = None, budget: float | None = None, session: str = ""
) -> GoalFacts:
    """Have the session (by default the current one, else the goal's own) pursue it."""
    goal = await _find(access, name)
    record = await _record(access, session or access.session or goal.session)
    if record is None:
        raise HermesError(f"No session pursues {goal.id}: `/goal resume {goal.id}` in a chat begins.")
    return await _facts(access, await work_of(access).desk.resume(goal, record, turns, budget))


async def check_goal(access: Access[System], name: str = "") -> GoalFacts:
    """Check the criteria now. A goal whose criteria all hold is done."""
    found = await work_of(access).desk.check(await _find(access, name))
    return await _facts(access, found.goal, found.checks, met=found.met)


async def add_criterion(access: Access[System], criterion: Criterion, name: str = "") -> GoalFacts:
    """Add a criterion to a goal."""
    goal = await work_of(access).desk.add(_who(access), await _find(access, name), criterion)
    return await _facts(access, goal)


async def prove_goal(access: Access[System], name: str, proof: str) -> str:
    """Let the command that a folder names, and that was shown by its hash, decide about a goal."""
    goal = await _find(access, name)
    command = await asyncio.to_thread(proof_in, goal.folder)
    if short_hash(command) != proof:
        raise HermesError("The folder changed since this was asked. `/subgoal command CMD` adds a command.")
    await work_of(access).desk.add(_who(access), goal, Criterion(kind=Kind.COMMAND, text=command), instead=True)
    return f"{goal.id} is done when `{command}` exits with 0."


async def wait_goal(access: Access[System], until: str = "", command: str = "") -> GoalFacts:
    """Ask no model until that time (`10m`, `15:30`), or the end of that background command; without either, look at a
    waiting goal now."""
    work, goal = work_of(access), await _find(access, "")
    when = moment_of(until, access.system.machine.now()) if until else None
    act = work.desk.wait(goal, when, command) if until or command else work.desk.unwait(goal)
    work.watch((after := await act).session)
    return await _facts(access, after)


def goal_text(found: GoalFacts) -> str:
    """A goal with its receipts, as text."""
    lines = [found.line, *(f"  {each}" for each in found.criteria)]
    lines += [f"  constraint: {each}" for each in found.constraints]
    lines += [f"  {found.why}"] if found.why else []
    asked = {each.criterion for each in found.checks}
    lines += [f"  not checked: {each}" for each in found.criteria if asked and each not in asked]
    for each in found.checks:
        code = "" if each.exit_code is None else f" (exit {each.exit_code}, {each.seconds:.1f} s)"
        lines.append(f"  {each.verdict}: {each.criterion}{code}")
        if each.verdict != "met" and each.evidence:
            lines += [f"    {line}" for line in each.evidence.splitlines()[-5:]]
    return "\n".join(lines)


_pause, _finish = partial(stop_goal, state=State.PAUSED), partial(stop_goal, state=State.DONE)
GOAL = place("name", default="", metavar="ID")
GOAL_NOUN = Noun(
    name="goals",
    short_help="Set goals whose criteria are checked, and follow them.",
    help="Set goals whose criteria are checked. Hermes works until they hold, or says what stopped it.",
    verbs=(
        verb(
            "list",
            "List the open goals.",
            list_goals,
            option("ended", "--all", "Ended ones too."),
            text=lambda rows: "\n".join(row.line for row in rows),
            nothing='There is no goal. `hermes goals add "TEXT" --command CMD` sets one.',
        ),
        verb("show", "Show a goal, its criteria and receipts.", show_goal, GOAL, text=goal_text),
        verb(
            "pause",
            "Pursue a goal no more until it is resumed.",
            _pause,
            GOAL,
            text=goal_text,
        ),
        verb("done", "End a goal as done, by hand.", _finish, GOAL, text=goal_text),
        verb(
            "clear",
            "End a goal that is not wanted any more.",
            stop_goal,
            GOAL,
            text=goal_text,
        ),
    ),
)
