"""The home chat of a channel, in config.yaml."""

import pytest

from hermes_agent.app.commands.sethome import home_of
from hermes_agent.cli.commands.send import place_of
from hermes_agent.core.errors import HermesError
from tests.app.place import place


async def test_only_a_chat_of_the_gateway_can_be_a_home(tmp_path):
    async with place(tmp_path, []) as here:
        with pytest.raises(HermesError, match="Only a chat of the gateway"):
            await here.text("/sethome")


@pytest.mark.parametrize(("chat", "thread"), [("-100123", ""), ("-100123", "7"), ("!room:example.org", "$e%:x")])
def test_a_home_names_a_chat_whatever_its_ids_hold(chat, thread):
    found = place_of(f"telegram:{home_of(chat, thread)}")

    assert (found.chat, found.thread) == (chat, thread)
