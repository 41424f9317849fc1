"""Several conversations in one chat; how it feels in a chat: `tests/gateway/chats/test_topics.py`."""

import pytest

from hermes_agent.app.commands.chats import MOST
from hermes_agent.core.errors import HermesError
from tests.app.place import place


async def test_topics_are_made_listed_changed_and_left(tmp_path):
    async with place(tmp_path, []) as here:
        assert "no topics here" in await here.text("/topic")
        assert "Topic food" in await here.text("/topic create Food")
        assert "Topic trips" in await here.text("/topic create trips")
        assert await here.text("/topic list") == "Topics: food, trips (this one)"
        assert "Topic food" in await here.text("/topic switch food")
        assert "No topic" in await here.text("/topic off")
        assert await here.text("/topic") == "Topics: food, trips"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/topic create food", "already"),
        ("/topic switch fod", "There is no topic fod"),
        ("/topic create", "Say `/topic create NAME`"),
        ("/topic create a b", "Say `/topic"),
        ("/topic create a#b", "Say `/topic"),
        ("/topic fly", "Say `/topic"),
    ],
)
async def test_what_cannot_be_is_told(tmp_path, line, told):
    async with place(tmp_path, []) as here:
        await here.text("/topic create food")
        with pytest.raises(HermesError, match=told):
            await here.text(line)


async def test_there_are_not_more_than_so_many(tmp_path):
    async with place(tmp_path, []) as here:
        for number in range(MOST):
            await here.text(f"/topic create t{number}")
        with pytest.raises(HermesError, match="the most"):
            await here.text("/topic create more")
