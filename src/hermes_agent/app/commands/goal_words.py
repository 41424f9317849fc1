"""The words of /goal and /subgoal: set a goal from a line, or act on one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from hermes_agent.app.operations import goals as operations
from hermes_agent.app.operations.goals import GoalFacts, goal_text
from hermes_agent.core.errors import HermesError
from hermes_agent.store.work.goals import Criterion, Kind, State
from hermes_agent.work.goals.desk import Wish, criterion_of

if TYPE_CHECKING:
    from hermes_agent.app.commands.command import Desk
    from hermes_agent.app.operations.access import Access
    from hermes_agent.app.system import System

FLAG = re.compile(r"(?:^|\s)--(command|file|board|judge|constraint|turns|money|tokens|anyway)\b")
CRITERIA = ("command", "file", "board", "judge")
BY_NAME: dict[str, Callable[[Access[System], str], Awaitable[GoalFacts]]] = {
    "show": operations.show_goal,
    "status": operations.show_goal,
    "pause": partial(operations.stop_goal, state=State.PAUSED),
    "done": partial(operations.stop_goal, state=State.DONE),
    "clear": partial(operations.stop_goal, state=State.DROPPED),
    "check": operations.check_goal,
}


def wish_of(text: str, *, later: bool = False) -> Wish:
    """The goal of a line: words, then `--command CMD`, `--file PATH`, `--judge WORDS`, `--constraint WORDS`,
    `--turns N`, `--money DOLLARS`, `--tokens N`, `--anyway`. Raises `HermesError`."""
    words, *rest = FLAG.split(text)
    given = [(name, value.strip()) for name, value in zip(rest[::2], rest[1::2], strict=True)]
    last = dict(given)
    turns, tokens = _number(last, "turns"), _number(last, "tokens")
    return Wish(
        text=words.strip(),
        criteria=tuple(criterion_of(name, value) for name, value in given if name in CRITERIA),
        constraints=tuple(value for name, value in given if name == "constraint"),
        turns=None if turns is None else int(turns),
        money=_number(last, "money", r"-?\d{1,12}(\.\d+)?"),
        tokens=None if tokens is None else int(tokens),
        anyway="anyway" in last,
        later=later,
    )


def _number(given: Mapping[str, str], name: str, pattern: str = r"-?\d{1,15}") -> float | None:
    if name in given and not re.fullmatch(pattern, given[name]):
        raise HermesError(f"`--{name}` takes a {'' if '.' in pattern else 'whole '}number, not `{given[name]}`.")
    return float(given[name]) if name in given else None


RESUME = re.compile(r"(?P<id>g_[0-9a-f]+)?\s*(?:turns\s+(?P<turns>\d+))?\s*(?:budget\s+\$?(?P<budget>\d+(?:\.\d+)?))?")
RESUMES = re.compile(r"(g_|turns\b|budget\b)")
TIME = re.compile(r"\d+\s*[smhd]|\d{1,2}:\d\d|\d{4}-\d\d-\d\d\S*(?: \d\S*)?")
EXEC = re.compile(r"[\w.:-]+(?:/[\w.:-]+)?")


async def goal(desk: Desk, rest: str) -> str:
    """Set a goal, or act on one."""
    if rest in ("", "list", "list all"):
        return await _listed(desk, all_of=rest == "list all")
    word, _, more = rest.partition(" ")
    act = _act(desk.access, word, more.strip())
    return goal_text(await (act or operations.set_goal(desk.access, wish_of(rest))))


def _act(access: Access[System], word: str, more: str) -> Awaitable[GoalFacts] | None:
    """What a verb does; None where the words are the text of a goal."""
    if word in ("draft", "wait", "until") and not more:
        raise HermesError("Say more: `/goal draft TEXT`, `/goal wait COMMAND`, `/goal until TIME`.")
    if word in BY_NAME and (not more or more.startswith("g_")):
        return BY_NAME[word](access, more)
    if word == "resume" and not (found := RESUME.fullmatch(more)) and RESUMES.match(more):
        raise HermesError("Say `/goal resume [ID] [turns N] [budget DOLLARS]`.")
    if word == "resume" and found:
        turns = int(found["turns"]) if found["turns"] else None
        return operations.resume_goal(
            access, found["id"] or "", turns, float(found["budget"]) if found["budget"] else None
        )
    if word == "draft" and more:
        return operations.set_goal(access, wish_of(more, later=True))
    return _of_waiting(access, word, more)


def _of_waiting(access: Access[System], word: str, more: str) -> Awaitable[GoalFacts] | None:
    if word == "wait" and EXEC.fullmatch(more):
        return operations.wait_goal(access, command=more)
    if word == "until" and (TIME.fullmatch(more) or " " not in more):
        return operations.wait_goal(access, until=more)
    return operations.wait_goal(access) if word == "unwait" and not more else None


async def _listed(desk: Desk, *, all_of: bool) -> str:
    found = await operations.list_goals(desk.access, ended=all_of)
    how = "`/goal TEXT --command CMD` sets one: it is reached when the command exits with 0."
    return "\n".join(each.line for each in found) or f"There is no goal. {how}"


async def subgoal(desk: Desk, rest: str) -> str:
    """Add a criterion to the session's goal: `command CMD`, `file PATH`, `board CARD`, or words for the judge."""
    if not rest:
        raise HermesError("Say what else has to hold: `/subgoal command CMD`, `/subgoal file PATH`, `/subgoal WORDS`.")
    kind, _, text = rest.partition(" ")
    is_kind = kind in CRITERIA and text.strip()
    criterion = criterion_of(kind, text) if is_kind else Criterion(kind=Kind.JUDGE, text=rest)
    return goal_text(await operations.add_criterion(desk.access, criterion))
