"""A whole system with goals, in front of a scripted model."""

from hermes_agent.app.work import GOALS
from hermes_agent.app.work.goals import GoalWork, whose_goals
from hermes_agent.core.chat import Conversation
from hermes_agent.store.work.goals import Criterion, Goal, Kind, State
from hermes_agent.work.goals.checks import SYSTEM
from hermes_agent.work.goals.desk import Whose, Wish
from tests.app.place import Place

JUDGE = SYSTEM[:30]
"""By this a script knows that the judge is asked."""


def work_of(there: Place) -> GoalWork:
    work: GoalWork = there.runtime.snapshots.now.needs.made(GOALS)
    return work


def command(text: str) -> tuple[Criterion, ...]:
    return (Criterion(kind=Kind.COMMAND, text=text),)


async def anew(there: Place, name: str) -> None:
    """Go on in a new session."""
    where = Conversation(platform="cli", chat_kind="folder", chat=name)
    hermes, owner = there.runtime.hermes, there.runtime.owner
    there.record = await hermes.open_session(where, owner, workspace=there.record.workspace)


def owned_by(there: Place, principal: str = "") -> Whose:
    """Whose goals a principal (the owner) has."""
    return whose_goals(there.runtime.standings, principal or there.runtime.owner.key)


async def started(there: Place, text: str = "Reach it.", criteria: tuple[Criterion, ...] = (), **more) -> Goal:
    """A goal that the session of this place has begun with."""
    work = work_of(there)
    wish = Wish(text=text, criteria=criteria, **more)
    made = await work.desk.create(owned_by(there), wish, there.record, there.record.workspace)
    return made.goal


async def ended(there: Place, goal: Goal) -> Goal:
    """The goal as it stands when nothing goes on any more."""
    found = await work_of(there).settled(goal.id)
    await work_of(there).pursuit.settled()
    return found


async def reached(there: Place, state: State, goal: Goal) -> Goal:
    """The goal, once it is in that state."""
    while True:
        found = await there.runtime.store.goals.get(goal.id)
        assert found is not None
        if found.state is state:
            return found
        await there.runtime.clock.sleep(0.01)
