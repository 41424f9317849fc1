"""The prompt of a session, and of a new one."""

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.prompt import new_prompt, session_prompt
from hermes_agent.core.errors import UnknownSession
from tests.app.place import counting, place


async def test_a_session_has_a_prompt_once_something_was_asked_in_it(tmp_path):
    async with place(tmp_path, counting) as here:
        owner = Access(system=here.runtime, who=here.runtime.owner, folder=here.record.workspace)
        with pytest.raises(UnknownSession, match="no prompt yet"):
            await session_prompt(owner, here.record.id)
        await here.say("Hi")
        frozen, (fresh, _) = await session_prompt(owner, here.record.id), await new_prompt(owner)

    assert [part.name for part in frozen] == [part.name for part in fresh]
    assert frozen[-1].name == "tools"
