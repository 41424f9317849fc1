"""The home chat of a channel, in config.yaml."""

import pytest

from hermes_agent.core.errors import HermesError
from tests.app.place import place


async def test_only_a_chat_of_the_gateway_can_be_a_home(tmp_path):
    async with place(tmp_path, []) as here:
        with pytest.raises(HermesError, match="Only a chat of the gateway"):
            await here.text("/sethome")
