"""Whose notes a conversation has."""

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.memory.settings import Person, Target, is_shared, person_of, space_in, target_of


@pytest.mark.parametrize(
    ("conversation", "shared"),
    [
        (Conversation(platform="cli", chat_kind="folder", chat="/a:b#c"), False),
        (Conversation(platform="telegram", chat="1"), False),
        (Conversation(platform="api", chat_kind="chat", chat="anna", thread="5a"), False),
        (Conversation(platform="api", chat_kind="name", chat="anna", thread="work"), False),
        (Conversation(platform="telegram", chat_kind="group", chat="1"), True),
        (Conversation(platform="telegram", chat_kind="group", chat="1", thread="2", topic="x"), True),
        (Conversation(platform="telegram", chat_kind="group", chat="1", participant="7"), False),
        (Conversation(platform="discord", chat_kind="channel", chat="9"), True),
    ],
)
def test_a_chat_is_shared_unless_one_person_has_it(conversation: Conversation, shared: bool):
    assert is_shared(conversation.key) is shared


def test_the_owners_files_are_the_homes_own_and_everybody_else_has_others():
    owner, guest, other = (person_of(key, lambda key: key == "cli:me") for key in ("cli:me", "tg:1", "tg:2"))

    assert owner.item(Target.MEMORY) == "MEMORY.md"
    assert guest.item(Target.USER).startswith("people/")
    assert guest.item(Target.USER).endswith("/USER.md")
    assert len({person.item(Target.USER) for person in (owner, guest, other)}) == 3
    assert "tg" not in guest.item(Target.USER)


def test_a_hostile_key_makes_no_path():
    item = Person(key="tg:../../MEMORY.md\0\ud800").item(Target.MEMORY)

    assert ".." not in item
    assert item.count("/") == 2


def test_a_file_tells_what_it_is():
    assert [target_of(Person(key="x").item(target)) for target in Target] == list(Target)


def test_the_owner_s_space_is_the_name_itself_and_another_s_tells_nobody_who_it_is():
    ann = Person(key="telegram:ann")

    assert space_in("hermes", Person(key="cli:me", owner=True)) == "hermes"
    assert space_in("hermes", ann) == f"hermes-{ann.space}"
    assert "ann" not in space_in("hermes", ann)
