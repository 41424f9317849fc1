"""What a model is told of the place that it speaks in."""

import pytest

from hermes_agent.app.chats.platforms import OWN, Platform, ThisRun, own_platform, place_of
from hermes_agent.core.chat import Conversation
from hermes_agent.core.section import estimate_tokens
from hermes_agent.tools.surfaces import LOCAL, WEBHOOK

CHAT = Platform(title="Chat", facts=("short", "plain"))


@pytest.mark.parametrize("platform", sorted(OWN))
def test_each_of_the_program_s_own_places_is_told_in_a_few_words(platform: str):
    told = place_of(Conversation(platform=platform, chat="x").key, own_platform)

    assert told.startswith(f"- Channel: {OWN[platform].title}")
    assert 15 <= estimate_tokens(told) <= 60


def test_there_is_a_word_on_every_surface_of_the_program():
    assert OWN.keys() >= {WEBHOOK, *(each.rstrip(":") for each in LOCAL)}


@pytest.mark.parametrize(
    ("where", "who"),
    [
        (Conversation(platform="chat", chat="1", participant="@ann:x"), "in private: one person reads"),
        (Conversation(platform="chat", chat_kind="group", chat="1", participant="7"), "others read too"),
        (Conversation(platform="chat", chat_kind="group", chat="1", topic="food"), "you speak with several people"),
    ],
)
def test_who_reads_follows_from_the_conversation_whose_ids_are_not_told(where: Conversation, who: str):
    told = place_of(where.key, {"chat": CHAT}.get)

    assert told.startswith("- Channel: Chat, ")
    assert who in told
    assert told.endswith("\n- Messages: short; plain")
    assert not {"1", "7", "ann"} & {*told.replace(":", " ").split()}


def test_of_a_place_that_nobody_knows_the_name_is_told():
    assert place_of("irc:dm:1", own_platform) == "- Channel: irc, in private: one person reads"


async def test_what_holds_for_one_run_stands_beside_its_message():
    assert await ThisRun(attended=True, reading="").words("s", "Hi") == ""
    assert await ThisRun(attended=False, reading="It is read aloud.").words("s", "Hi") == (
        "Nobody answers questions in it: decide, and say what you assumed. It is read aloud."
    )
