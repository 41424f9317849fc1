"""A home names a chat whatever its ids hold."""

import pytest

from hermes_agent.app.chats.settings import home_of, place_at
from hermes_agent.cli.commands.webhook import place_of
from hermes_agent.core.chat import Conversation


@pytest.mark.parametrize(("chat", "thread"), [("-100123", ""), ("-100123", "7"), ("!room:example.org", "$e%:x")])
def test_a_home_names_a_chat_whatever_its_ids_hold(chat, thread):
    found = place_of(f"telegram:{home_of(Conversation(platform='telegram', chat=chat, thread=thread))}")

    assert (found.chat, found.thread) == (chat, thread)


def test_what_is_not_set_names_none():
    assert place_at("telegram", "") is None
