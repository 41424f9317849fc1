"""Operations on goals: a person's own, in private."""

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.goals import (
    Wish,
    check_goal,
    criterion_of,
    goal_text,
    list_goals,
    resume_goal,
    set_goal,
    show_goal,
    stop_goal,
)
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError
from tests.app.place import PLACE, counting, place

MEMBER = Principal(platform="api", user="anna", standing=Standing.MEMBER)
GUEST = Principal(platform="api", user="bob", standing=Standing.GUEST)
NEVER = Wish(text="Never.", criteria=(criterion_of("command", "echo broken; exit 1"),), later=True)


async def test_a_goal_is_shown_with_its_account_and_receipts(tmp_path):
    async with place(tmp_path, counting) as here:
        owner = Access(system=here.runtime, who=here.runtime.owner, session=here.record.id)
        made = await set_goal(owner, NEVER)
        checked = await check_goal(owner)
        shown = await show_goal(owner, made.id)
        text = goal_text(shown)

    assert (checked.met, shown.checks[0].verdict, shown.spent) == (False, "unmet", 0.0)
    assert f"{made.id}  draft  turn 0 of 20  $0.00  Never." in text
    assert "unmet: `echo broken; exit 1` (exit 1" in text
    assert text.endswith("    broken")


async def test_others_goals_are_not_there_and_guests_have_none(tmp_path):
    async with place(tmp_path, counting) as here:
        made = await set_goal(Access(system=here.runtime, who=here.runtime.owner, folder=str(tmp_path)), NEVER)
        member, guest = (Access(system=here.runtime, who=who) for who in (MEMBER, GUEST))

        assert await list_goals(member) == []
        for act in (show_goal, stop_goal, check_goal):
            with pytest.raises(HermesError, match="There is no goal"):
                await act(member, made.id)
        with pytest.raises(HermesError, match="Guests have no goals"):
            await list_goals(guest)


async def test_where_others_read_along_nothing_is_said_of_goals(tmp_path):
    group = Conversation(platform="telegram", chat_kind="group", chat="1")
    async with place(tmp_path, counting) as here:
        for where, session in ((group, here.record.id), (PLACE, "20260101_000000_abcdef")):
            access = Access(system=here.runtime, who=here.runtime.owner, where=where, session=session)
            with pytest.raises(HermesError, match=r"private matter|no session"):
                await set_goal(access, Wish(text="x", criteria=NEVER.criteria))


async def test_a_goal_is_resumed_in_a_session_of_ones_own(tmp_path):
    async with place(tmp_path, counting) as here:
        owner = Access(system=here.runtime, who=here.runtime.owner, folder=str(tmp_path))
        made = await set_goal(owner, NEVER)
        with pytest.raises(HermesError, match="No session pursues"):
            await resume_goal(owner, made.id)
        resumed = await resume_goal(owner, made.id, session=here.record.id)

    assert (resumed.state, resumed.session, resumed.turns) == ("active", here.record.id, 1)
