"""Cards, goals and jobs that need somebody are in the status, for whom they belong to."""

from dataclasses import replace
from pathlib import Path

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.board import create_card
from hermes_agent.app.operations.status import standing
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.store.work.goals import Goal, State
from tests.app.place import counting, place

ANNA = Principal(platform="api", user="anna", standing=Standing.MEMBER)
GOAL = Goal(id="g_00000a", principal="owner", text="It is green.", created=1.0, state=State.BLOCKED, why="No progress.")


async def test_what_waits_is_named_with_the_command_that_shows_it(tmp_path: Path):
    async with place(tmp_path, counting) as here:
        store, owner = here.runtime.store, Access(system=here.runtime, who=here.runtime.owner)
        for goal in (GOAL, replace(GOAL, id="g_00000b", state=State.PAUSED)):
            await store.write(lambda tx, goal=goal: store.goals.put(tx, goal))
        created = await create_card(owner, "Write it.")

        found = {piece.id: piece for piece in await standing(owner)}
        theirs = await standing(Access(system=here.runtime, who=ANNA))
        guests = await standing(Access(system=here.runtime, who=replace(ANNA, standing=Standing.GUEST)))

    assert found.keys() == {"g_00000a", created.id}
    assert found["g_00000a"].note == "No progress. `hermes goals show g_00000a`"
    assert theirs == guests == []
