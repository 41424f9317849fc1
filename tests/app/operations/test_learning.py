"""What was learned is the owner's alone."""

import pytest

from hermes_agent.app.operations.access import Access, say_verb
from hermes_agent.app.operations.learning import CURATED, LEARNED, explain_turn, list_learned
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import HermesError
from tests.app.place import counting, place

MEMBER = Principal(platform="api", user="anna", standing=Standing.MEMBER)


async def test_nobody_else_sees_or_changes_it(tmp_path):
    lines = [
        (noun, verb.name, [each for each in verb.arguments if not each.flag])
        for noun in (LEARNED, CURATED)
        for verb in noun.verbs
    ]
    async with place(tmp_path, counting) as here:
        member = Access(system=here.runtime, who=MEMBER)
        for noun, name, places in lines:
            with pytest.raises(HermesError, match="Only the owner may"):
                await say_verb(noun, member, [name, *("1" for _ in places)])


async def test_a_turn_is_that_of_the_session_where_it_is_asked_or_of_the_latest(tmp_path):
    async with place(tmp_path, counting) as here:
        owner = Access(system=here.runtime, who=here.runtime.owner)
        assert await list_learned(owner, 5) == []
        await here.say("Hi")
        for access in (owner, Access(system=here.runtime, who=here.runtime.owner, session=here.record.id)):
            assert "No lessons" in (await explain_turn(access, 1))[0]
