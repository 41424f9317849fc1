"""Rules of goals, without any input or output: what follows from a run's end and from a check, and in which words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.core.spending import NANO
from hermes_agent.store.work.goals import Check, Criterion, Goal, Kind, State
from hermes_agent.work.goals.settings import GoalSettings

SOURCE = "goal"
"""The source of messages that go on with a goal; their id is `ID:REVISION:ROUND`."""
LONGEST = 4_000
"""Characters of a goal's text, and of each criterion and constraint."""
MOST_TURNS, MOST_DOLLARS = 1_000, 1_000_000
MOST_ACTIVE, MOST_CRITERIA = 10, 20
SHOWN = 2_000
"""Bytes of a failing output that the agent is shown."""
MOST_DRIFT = 5
"""Rounds in which other calls over the same state count as progress."""
MOST_GARBLED, MOST_UNREACHED = 3, 5
PAUSE = 600.0
"""Seconds until a goal is looked at again that waits for something that nobody named."""
FIRST_RETRY = 30.0
"""Seconds until a judge that could not be reached is asked again, doubling."""
OUT_OF_BUDGET = ("money limit", "token limit")
GONE = "the folder is gone"
FOR_CARDS = "It waits for cards that others work on."
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?\S*|0x[0-9a-fA-F]+|\d+(\.\d+)?")
_TEMPORARY = re.compile(r"/tmp/\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a check found beside its receipts: a hash of the folder's files and of the calls of the run, whether a
    person spoke in it, the call that nobody was there to approve, and whether the account is used up."""

    now: float
    folder: str = ""
    effects: str = ""
    spoke: bool = False
    unapproved: str = ""
    spent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The goal as it becomes, whether the agent goes on, and the news for the person (empty: none)."""

    goal: Goal
    continues: bool = False
    news: str = ""


def after_run(goal: Goal, ended: RunEnded, most: GoalSettings) -> Goal | None:
    """The goal at the end of a run of its session; None where the end changes nothing."""
    if goal.state is State.WAITING:
        return None
    goal = replace(goal, round=goal.round + 1)
    if ended.outcome is Outcome.STOPPED:
        return replace(goal, state=State.PAUSED, why="You stopped its run.")
    if ended.outcome is Outcome.LIMIT and ended.reason in OUT_OF_BUDGET:
        return limited(goal, ended.text)
    if ended.outcome is not Outcome.FAILED:
        return replace(goal, state=State.CHECKING, fails=0)
    goal = replace(goal, fails=goal.fails + 1, state=State.CHECKING)
    if goal.fails < most.fails:
        return goal
    return blocked(goal, f"{goal.fails} runs in a row failed: {ended.text}")


def limited(goal: Goal, why: str) -> Goal:
    """The goal at a limit of turns, money or tokens."""
    return _halted(goal, State.LIMITED, "stopped at a limit", why, " turns N budget DOLLARS")


def blocked(goal: Goal, why: str) -> Goal:
    """The goal as it waits for a person."""
    return _halted(goal, State.BLOCKED, "is blocked", why)


def _halted(goal: Goal, state: State, how: str, why: str, more: str = "") -> Goal:
    told = f"Goal {goal.id} {how}: {why} `/goal resume {goal.id}{more}` continues it."
    return replace(goal, state=state, why=why, untold=told)


def decide(goal: Goal, checks: Sequence[Check], found: Found, most: GoalSettings) -> Decision:
    """What follows from a check."""
    unmet = tuple(_line(each) for each in checks if each.verdict != "met")
    goal = replace(goal, unmet=unmet, said=("", ""), wait_until=None, wait_exec="")
    if not unmet and len(checks) == len(goal.criteria):
        return _done(goal, checks, found.now)
    verdicts = {each.verdict for each in checks}
    goal = replace(
        goal,
        garbled=goal.garbled + 1 if "garbled" in verdicts else 0,
        unreached=goal.unreached + 1 if "unreached" in verdicts else 0,
    )
    if why := _needs_person(goal, checks, found):
        return _stopped(blocked(goal, why))
    return _going_on(goal, checks, found, most)


def _needs_person(goal: Goal, checks: Sequence[Check], found: Found) -> str:
    """Why only a person can go on; empty where the agent may."""
    impossible = [each for each in checks if each.verdict == "impossible"]
    if impossible:
        return f"{impossible[0].criterion} cannot be met: {impossible[0].evidence}"
    if any(each.evidence == GONE for each in checks):
        return f"{goal.folder} is gone."
    if found.unapproved:
        return f"A call needs your approval, and nobody was there: {found.unapproved}"
    if goal.garbled >= MOST_GARBLED or goal.unreached >= MOST_UNREACHED:
        return "The judge gave no usable answer."
    return ""


def _going_on(goal: Goal, checks: Sequence[Check], found: Found, most: GoalSettings) -> Decision:
    if goal.unreached:
        later = found.now + FIRST_RETRY * 2 ** (goal.unreached - 1)
        return Decision(goal=replace(goal, state=State.WAITING, why="The judge is out of reach.", wait_until=later))
    is_for_cards = {each.kind for each in checks if each.verdict != "met"} == {Kind.BOARD}
    if is_for_cards or any(each.verdict == "waiting" for each in checks):
        why = FOR_CARDS if is_for_cards else "It was judged to wait."
        return Decision(goal=replace(goal, state=State.WAITING, why=why, wait_until=found.now + PAUSE))
    if found.spent:
        return _stopped(limited(goal, "Its money or tokens are used up."))
    goal = marked(goal, checks, found)
    if goal.same >= most.stalls:
        return _stopped(blocked(goal, f"No progress in {goal.same} checks: {'; '.join(goal.unmet)}."))
    if goal.turns >= goal.max_turns:
        return _stopped(limited(goal, f"Its {goal.max_turns} turns are used up."))
    return Decision(goal=replace(goal, state=State.ACTIVE, why="", turns=goal.turns + 1), continues=True)


def reported(goal: Goal, decision: Decision, said: tuple[str, str], now: float) -> Decision:
    """The decision where the agent itself reported that it is blocked or waits, and the criteria do not hold."""
    word, why = said
    if not decision.continues or not word:
        return decision
    if word == "blocked":
        return _stopped(blocked(decision.goal, why or "The agent says that it cannot continue."))
    return Decision(goal=replace(decision.goal, turns=goal.turns, state=State.WAITING, why=why, wait_until=now + PAUSE))


def _stopped(goal: Goal) -> Decision:
    return Decision(goal=replace(goal, untold=""), news=goal.untold)


def _done(goal: Goal, checks: Sequence[Check], now: float) -> Decision:
    receipts = "\n".join(f"- {_line(each)}" for each in checks)
    news = f"Goal {goal.id} is done: {goal.text}\n{receipts}"
    return Decision(goal=replace(goal, state=State.DONE, why="", ended=now, same=0), news=news)


def marked(goal: Goal, checks: Sequence[Check], found: Found) -> Goal:
    """The goal with the state that this check found. Other calls over the same state count as progress for some
    rounds; so does what a person said."""
    seen = [(each.criterion, each.verdict, _folded(each)) for each in checks]
    mark = hashlib.sha256(repr((seen, found.folder)).encode("utf-8", "replace")).hexdigest()
    if found.spoke or mark != goal.mark:
        return replace(goal, mark=mark, effects=found.effects, same=1, drift=0)
    if found.effects != goal.effects and goal.drift < MOST_DRIFT:
        return replace(goal, effects=found.effects, drift=goal.drift + 1)
    return replace(goal, effects=found.effects, same=goal.same + 1)


def _folded(check: Check) -> str:
    """A failing output without what differs from run to run; a judge's words differ always."""
    return "" if check.kind is Kind.JUDGE else _STAMP.sub("#", _TEMPORARY.sub("/tmp", check.evidence))


def _line(check: Check) -> str:
    """A receipt in the runtime's own words: never the judge's, which outside text may have led."""
    code = "" if check.exit_code is None else f", exit {check.exit_code}"
    told = f" ({check.evidence})" if check.kind is Kind.JUDGE and check.verdict == "met" else ""
    return f"{check.criterion}: {check.verdict}{code}{told}"


def continuation(goal: Goal, checks: Sequence[Check]) -> tuple[str, str]:
    """What the agent is told to go on with, and what the criteria said."""
    again = " Nothing changed since the last check: try another way." if goal.same > 1 else ""
    lines = [f"Goal {goal.id} is not reached (turn {goal.turns} of {goal.max_turns}).{again} Not met:"]
    lines += [f"- {each}" for each in goal.unmet]
    lines += [f"Constraint: {each}" for each in goal.constraints]
    lines += [
        "Continue until they are met. The criteria are checked after your reply; what you say of them does not count. "
        "If you cannot continue without the person, report it with the tool `goal`.",
    ]
    failing = [each for each in checks if each.verdict != "met" and each.evidence]
    outputs = "\n\n".join(f"{each.criterion} said:\n{each.evidence[-SHOWN:]}" for each in failing)
    return "\n".join(lines), outputs


def message_id(goal: Goal) -> str:
    """The id of the message that continues a goal after its round."""
    return f"{goal.id}:{goal.revision}:{goal.round}"


def first_words(goal: Goal) -> str:
    """The message that begins the work."""
    lines = [goal.text, "", "It counts as done when:", *(f"- {each}" for each in goal.criteria)]
    if all(each.kind is Kind.JUDGE for each in goal.criteria):
        lines.append("If a command can prove it, propose that command to me with the tool `goal`.")
    return "\n".join([*lines, *(f"Constraint: {each}" for each in goal.constraints)])


def problem_of(text: str, criteria: Sequence[Criterion], turns: int, constraints: Sequence[str] = ()) -> str:
    """Why a goal cannot be set so; empty where it can."""
    if not text.strip():
        return "Say what is to be reached."
    for each in (text, *(one.text for one in criteria), *constraints):
        if len(each) > LONGEST:
            return (
                f"A goal, a criterion and a constraint have at most {LONGEST:,} characters; this has {len(each):,}. "
                "Put the rest into a file, and name it."
            )
    several = [*(one.text for one in criteria), *constraints]
    if len(several) > MOST_CRITERIA or sum(map(len, several)) > 3 * LONGEST:
        return f"Criteria and constraints are at most {MOST_CRITERIA}, of {3 * LONGEST:,} characters in all."
    if not 1 <= turns <= MOST_TURNS:
        return (
            f"A goal takes at least one turn, not {turns}." if turns < 1 else f"It takes at most {MOST_TURNS:,} turns."
        )
    empty = [each for each in criteria if not each.text.strip()]
    return f"A criterion of the kind {empty[0].kind} is empty." if empty else ""


def nanodollars(dollars: float) -> int:
    """Money of a goal. Raises `HermesError` for what no limit can be."""
    if not 0 <= dollars <= MOST_DOLLARS:
        raise HermesError(f"Money cannot be negative, nor more than {MOST_DOLLARS:,} US dollars.")
    return round(dollars * NANO)


def tail(goals: Sequence[Goal], session: str) -> str:
    """What the agent is told of the open goals beside a message."""
    lines: list[str] = []
    for each in goals:
        here = each.session == session
        where = f"pursued here, turn {each.turns} of {each.max_turns}" if here else "pursued in another session"
        state = where if each.state in (State.ACTIVE, State.CHECKING) else each.state.value
        lines.append(f"- {each.id} ({state}): {_short(each.text, 400)}")
        wanted = each.unmet if here and each.unmet else [str(one) for one in each.criteria]
        lines += [f"  - {_short(one, 200)}" for one in list(wanted)[:6]]
        lines += [f"  - Constraint: {_short(one, 200)}" for one in each.constraints[:3] if here]
    text = "\n".join(lines)
    shown = text.encode("utf-8", "replace")[:SHOWN].decode("utf-8", "ignore")
    return text if shown == text else f"{shown}\n[more: the tool `goal` shows all]"


def _short(text: str, most: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[:most]}..."


def page(goal: Goal, receipts: Sequence[Check]) -> str:
    """A goal as the file that shows it."""
    lines = [
        f"# {goal.id}: {goal.state}",
        "",
        "This file shows the goal. Change it with `hermes goals` or `/goal`; edits here are lost.",
        "",
        goal.text,
        "",
        "## Criteria",
        "",
        *(f"- {each}" for each in goal.criteria),
        *(f"- Constraint: {each}" for each in goal.constraints),
        "",
        f"Turns: {goal.turns} of {goal.max_turns}. {goal.why}".rstrip(),
        "",
        "## Receipts",
        "",
        *(f"- {each.round}: {_line(each)} in {each.seconds:.1f} s" for each in receipts),
    ]
    return "\n".join(lines) + "\n"
