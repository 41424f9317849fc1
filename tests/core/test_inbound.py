"""Conversation keys name one place each."""

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.chat import Conversation, Inbound, Principal
from hermes_agent.core.messages import Image, Text


def test_a_key_reads_platform_kind_chat() -> None:
    assert Conversation(platform="telegram", chat_kind="group", chat="42", thread="7").key == "telegram:group:42:7"


def test_a_topic_is_part_of_the_key() -> None:
    assert Conversation(platform="telegram", chat="42", topic="work").key == "telegram:dm:42#work"


def test_a_colon_in_an_id_does_not_make_another_place() -> None:
    assert Conversation(platform="p", chat="a:b").key != Conversation(platform="p", chat="a", thread="b").key


@given(
    st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4)),
    st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4)),
)
def test_different_places_have_different_keys(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    keys = [Conversation(platform="p", chat=a, thread=b, participant=c).key for a, b, c in (one, other)]

    assert (keys[0] == keys[1]) == (one == other)


@given(st.lists(st.text(max_size=4), min_size=6, max_size=6))
def test_a_key_is_read_back(parts: list[str]) -> None:
    platform, kind, chat, thread, participant, topic = parts
    where = Conversation(
        platform=platform, chat_kind=kind, chat=chat, thread=thread, participant=participant, topic=topic
    )

    assert Conversation.parse(where.key) == where


def test_words_appear_in_a_place_whoever_takes_part() -> None:
    where = Conversation(platform="p", chat_kind="group", chat="1", thread="2", participant="ann", topic="work")

    assert where.place.key == "p:group:1:2"


@pytest.mark.parametrize(
    ("kind", "participant", "private", "shared"),
    [
        ("", "", True, False),
        ("dm", "", True, False),
        ("folder", "", True, False),
        ("group", "", False, True),
        ("group", "7", False, False),
    ],
)
def test_who_reads_and_who_speaks_follows_from_the_chat(
    kind: str, participant: str, *, private: bool, shared: bool
) -> None:
    where = Conversation(platform="p", chat_kind=kind, chat="1", participant=participant)

    assert (where.is_private, where.is_shared) == (private, shared)


def test_a_principal_is_platform_and_user() -> None:
    assert Principal(platform="cli", user="root").key == "cli:root"


def test_the_text_of_an_inbound_is_its_words() -> None:
    inbound = Inbound(
        source="s",
        source_id="1",
        principal=Principal(platform="p", user="u"),
        conversation=Conversation(platform="p"),
        parts=(Text(text="look "), Image(data="aa"), Text(text="here")),
        received=0.0,
    )

    assert inbound.text == "look here"
