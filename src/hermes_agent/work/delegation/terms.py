"""Terms of a child: what it gets of what its parent has. They narrow, and never widen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from hermes_agent.core.chat import Principal
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import BadArguments, Refused
from hermes_agent.core.events import Pinned
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.core.spending import Limit, Scope
from hermes_agent.host.nearest import nearest_key
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.work.delegation.settings import DelegationSettings

MOST_TASKS = 10
DELEGATION = "delegation"
NEVER = frozenset({"clarify", "memory", "sending", "code", "cron", "board", "goals"})
"""Toolsets that no child has: they speak to people, outlive the child, or call tools unseen."""
LEAST = ("todo",)
WORKER = """\
# Your work
You work for another agent, not for a person: nobody reads along, and nobody answers questions. Do the goal in the \
first message, and no more than it asks. Your last message is your report. It says what you did, what you did not do \
and why, and how you checked it. Name files by their whole paths. Claim no check that you did not run."""
SPLITTING = " You may give parts of it to agents of your own (delegate_task)."


class Role(StrEnum):
    """What a child is: a `leaf` works alone, an `orchestrator` may delegate while there is a level below it."""

    LEAF = "leaf"
    ORCHESTRATOR = "orchestrator"


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task of a call: what to do, and what the agent has to know for it."""

    goal: str
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The session that delegates, as it is during the call: its run, its toolsets, the capabilities that it lacks, and
    its pins. `principal` is who the children work for. `money` and `tokens` are what its limits leave, `of_job` is the
    limit of its job (None: it has none, or no job yet)."""

    record: SessionRecord
    mandate: Mandate | None
    run: str
    principal: Principal
    toolsets: tuple[str, ...]
    lacks: tuple[Capability, ...] = ()
    pins: tuple[Pinned, ...] = ()
    money: int | None = None
    tokens: int | None = None
    of_job: Limit | None = None
    last_said: str = ""

    @property
    def depth(self) -> int:
        """How many sessions are above it."""
        return self.mandate.depth if self.mandate else 0

    @property
    def job(self) -> str:
        """The job whose limits its children share: its own, or one for the children of this run."""
        return self.record.job or f"{self.record.id}.{self.run}"


def check_tasks(goal: str, context: str, tasks: Sequence[Task]) -> list[Task]:
    """The tasks of a call. Raises `BadArguments`."""
    alone = [Task(goal=goal, context=context)] if goal.strip() or not tasks else []
    wanted = [*alone, *tasks]
    if not alone and context.strip():
        raise BadArguments("`context` belongs to `goal` - at `$.context`", hint="Give each task its own `context`.")
    for number, task in enumerate(wanted):
        if not task.goal.strip():
            where = "$.goal" if alone and not number else f"$.tasks[{number - len(alone)}].goal"
            raise BadArguments(
                f"There is nothing to do - at `{where}`", hint="Give `goal`, or `tasks` with a goal each."
            )
    if len(wanted) > MOST_TASKS:
        raise BadArguments(
            f"{len(wanted)} tasks are more than {MOST_TASKS} - at `$.tasks`", hint="Make fewer calls of it."
        )
    return wanted


def narrowed(
    parent: Parent, asked: Sequence[str], role: Role, known: Collection[str], settings: DelegationSettings
) -> tuple[str, ...]:
    """The toolsets of a child. Raises `BadArguments` for an unknown name, `Refused` for one that it cannot have."""
    deepest, never = settings.max_depth, NEVER if settings.inherit_mcp else NEVER | {"mcp"}
    if parent.depth >= deepest:
        raise Refused(
            f"Agents at depth {parent.depth} start no others (`delegation.max_depth` is {deepest}).",
            hint="Do it yourself, and say in your report what is left.",
        )
    splits = role is Role.ORCHESTRATOR and parent.depth + 1 < deepest
    has = tuple(each for each in parent.toolsets if each not in never and (each != DELEGATION or splits))
    for name in asked:
        if name not in known:
            near = nearest_key(name, known)
            meant = f"Did you mean `{near}`?" if near else f"You can give: {', '.join(has)}."
            raise BadArguments(f"There is no toolset `{name}` - at `$.toolsets`", hint=meant)
        if name not in has:
            raise Refused(
                f"The toolset `{name}` cannot be given: delegation narrows what you have, and never widens it.",
                hint=f"You can give: {', '.join(has) or 'none'}.",
            )
    chosen = tuple(each for each in has if not asked or each in asked or (each == DELEGATION and splits))
    return chosen or LEAST


def mandate_of_child(
    parent: Parent, settings: DelegationSettings, toolsets: tuple[str, ...], *, now: float, end: float | None
) -> Mandate:
    """The mandate of a child that begins now. It inherits the `end`; each gets at most half of what is left of
    money and tokens, and all of a new job together no more."""
    above = parent.mandate
    until = now + settings.child_seconds
    money = None if parent.money is None else parent.money // 2
    tokens = None if parent.tokens is None else parent.tokens // 2
    shared = parent.of_job or Limit(scope=Scope.JOB)
    if not parent.record.job:
        shared = Limit(scope=Scope.JOB, money=money, tokens=tokens)
    return Mandate(
        kind=Work.CHILD,
        parent=parent.record.id,
        depth=parent.depth + 1,
        toolsets=toolsets,
        denied=parent.lacks,
        turns=settings.max_turns,
        until=until if end is None else min(until, end),
        money=money,
        tokens=tokens,
        job_money=shared.money,
        job_tokens=shared.tokens,
        effort=settings.effort or (above.effort if above else ""),
        role=WORKER + (SPLITTING if DELEGATION in toolsets else ""),
    )
