"""A review asks nobody and calls nothing else, whatever a tool of the library would like to."""

import pytest

from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.core.tool import Question
from hermes_agent.learning.drafts import OtherWriters


async def test_a_call_of_a_review_asks_nobody_and_calls_nothing_else():
    beside = OtherWriters(key="k", session="s", workspace="/work", speaker="cli:ann")
    beside.progress("half")

    assert beside.seconds_left() is None
    assert beside.speakers == {"cli:ann"}
    with pytest.raises(ToolError, match="Only a run calls other tools"):
        await beside.use("terminal", {"command": "id"})
    with pytest.raises(Refused, match="No one is here"):
        await beside.ask(Question(text="May I?"))
