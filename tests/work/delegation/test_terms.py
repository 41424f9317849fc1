"""Terms: what a child gets narrows, never widens, whatever is asked."""

import itertools

import pytest

from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import BadArguments, Refused
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.core.spending import Limit, Scope
from hermes_agent.store.sessions import Session
from hermes_agent.work.delegation.delegation import (
    LEAST,
    NEVER,
    WORKER,
    Parent,
    Role,
    Task,
    check_tasks,
    mandate_of_child,
    narrowed,
)
from hermes_agent.work.delegation.settings import DelegationSettings

KNOWN = ("files", "shell", "code", "web", "todo", "skills", "memory", "recall", "clarify", "sending", "delegation")
SETTINGS = DelegationSettings()


def parent(depth: int = 0, toolsets: tuple[str, ...] = KNOWN, job: str = "", **more: object) -> Parent:
    record = Session(
        id="p", principal="cli:me", conversation="cli:dm", surface="cli", created=1.0, updated=1.0, job=job
    )
    mandate = Mandate(kind=Work.CHILD, depth=depth, effort="low") if depth else None
    who = Principal(platform="cli", user="me", standing=Standing.OWNER)
    return Parent(record=record, mandate=mandate, run="r1", principal=who, toolsets=toolsets, **more)


def test_every_choice_of_toolsets_is_a_part_of_what_the_parent_has():
    for depth, role, size in itertools.product(range(2), Role, range(4)):
        for asked in itertools.combinations(KNOWN, size):
            has = parent(depth)
            try:
                found = narrowed(has, asked, role, KNOWN, SETTINGS)
            except Refused:
                assert {*asked} & {*NEVER, "delegation"}
                continue
            assert {*found} <= {*has.toolsets, *LEAST}
            assert not {*found} & NEVER
            assert "delegation" not in found or (role is Role.ORCHESTRATOR and depth == 0)
            assert not asked or {*found} <= {*asked, "delegation", *LEAST}


def test_what_the_parent_lacks_cannot_be_given():
    with pytest.raises(Refused, match="never widens"):
        narrowed(parent(toolsets=("files",)), ("web",), Role.LEAF, KNOWN, SETTINGS)
    assert narrowed(parent(toolsets=("files",)), (), Role.LEAF, KNOWN, SETTINGS) == ("files",)
    assert narrowed(parent(toolsets=("memory",)), (), Role.LEAF, KNOWN, SETTINGS) == LEAST


def test_tools_of_mcp_servers_are_inherited_unless_the_settings_say_no():
    has = parent(toolsets=("files", "mcp"))

    assert narrowed(has, (), Role.LEAF, KNOWN, SETTINGS) == ("files", "mcp")
    assert narrowed(has, (), Role.LEAF, KNOWN, DelegationSettings(inherit_mcp=False)) == ("files",)


def test_an_unknown_toolset_is_an_error_with_the_nearest():
    with pytest.raises(BadArguments, match=r"\$.toolsets") as error:
        narrowed(parent(), ("flies",), Role.LEAF, KNOWN, SETTINGS)
    assert error.value.hint == "Did you mean `files`?"


@pytest.mark.parametrize("deepest", [1, 2, 3])
def test_nobody_delegates_on_the_last_level(deepest):
    with pytest.raises(Refused, match="max_depth"):
        narrowed(parent(deepest), (), Role.ORCHESTRATOR, KNOWN, DelegationSettings(max_depth=deepest))
    above_last = narrowed(parent(deepest - 1), (), Role.ORCHESTRATOR, KNOWN, DelegationSettings(max_depth=deepest))
    assert "delegation" not in above_last


def test_the_mandate_inherits_the_deadline_and_a_half_of_what_is_left():
    has = parent(money=1001, tokens=10, lacks=(Capability.NET,))
    found = mandate_of_child(has, SETTINGS, ("files",), now=100.0, end=105.0)

    assert (found.kind, found.parent, found.depth, found.turns) == (Work.CHILD, "p", 1, 50)
    assert (found.until, found.denied, found.toolsets) == (105.0, (Capability.NET,), ("files",))
    assert (found.money, found.tokens, found.job_money, found.job_tokens) == (500, 5, 500, 5)
    assert (found.learns, found.remembers, found.role) == (False, False, WORKER)
    assert has.job == "p.r1"


def test_a_child_of_a_job_is_within_the_limits_of_that_job():
    of_job = Limit(scope=Scope.JOB, money=77)
    found = mandate_of_child(parent(1, job="j", money=10, of_job=of_job), SETTINGS, ("delegation",), now=0.0, end=None)

    assert (found.depth, found.money, found.job_money, found.effort) == (2, 5, 77, "low")
    assert found.until == SETTINGS.child_seconds
    assert "delegate_task" in found.role
    assert parent(1, job="j").job == "j"


def test_tasks_are_one_goal_or_several():
    assert check_tasks("a", "b", []) == [Task(goal="a", context="b")]
    assert check_tasks("", "", [Task(goal="c")]) == [Task(goal="c")]
    assert [task.goal for task in check_tasks("a", "", [Task(goal="c")])] == ["a", "c"]
    for wrong, where in (
        (("", "", []), r"\$.goal"),
        (("", "b", [Task(goal="c")]), r"\$.context"),
        (("", "", [Task(goal="c"), Task(goal=" ")]), r"\$.tasks\[1\].goal"),
        (("", "", [Task(goal="c")] * 11), "11 tasks"),
    ):
        with pytest.raises(BadArguments, match=where):
            check_tasks(*wrong)
