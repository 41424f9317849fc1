"""Deny by default; the same rules for words, buttons and commands."""

from itertools import product

import pytest

from hermes_agent.app.chats.settings import ChannelSettings, ChatSettings
from hermes_agent.core.inbound import Conversation, Standing
from hermes_agent.gateway.access import Access, Refusal, harmless
from hermes_agent.gateway.inbound_events import Sender

RULES = ChannelSettings(
    owners=("1",), members=("2", "role:crew"), guests=("3",), groups=("g",), chats={"loud": ChatSettings(mention=False)}
)
PEOPLE = {
    "owner": Sender(user="1"),
    "member": Sender(user="2"),
    "by role": Sender(user="8", groups=("role:crew",)),
    "paired": Sender(user="5"),
    "guest": Sender(user="3"),
    "stranger": Sender(user="9", name="1"),
    "bot": Sender(user="1", bot=True),
}
STANDINGS = {
    "owner": Standing.OWNER,
    "member": Standing.MEMBER,
    "by role": Standing.MEMBER,
    "paired": Standing.MEMBER,
    "guest": Standing.GUEST,
}


def place(kind: str, chat: str = "g", thread: str = "") -> Conversation:
    return Conversation(platform="p", chat_kind=kind, chat=chat, thread=thread)


def expected(person: str, kind: str, chat: str, addressed: bool) -> Standing | Refusal:
    """The whole table, said another way."""
    if person == "bot":
        return Refusal.UNKNOWN
    if kind == "group" and chat != "g":
        return Refusal.GROUP
    if person == "stranger":
        return Refusal.STRANGER if kind == "dm" else Refusal.UNKNOWN
    if kind == "group" and not addressed:
        return Refusal.UNADDRESSED
    return STANDINGS[person]


@pytest.mark.parametrize(
    ("person", "kind", "chat", "addressed"), list(product(PEOPLE, ("dm", "group"), ("g", "other"), (True, False)))
)
def test_who_is_heard_where(person: str, kind: str, chat: str, addressed: bool):
    access = Access(settings=RULES, paired=("5",))

    found = access.admits(PEOPLE[person], place(kind, chat), addressed=addressed)

    assert found is expected(person, kind, chat, addressed)


def test_without_rules_nobody_is_heard():
    access = Access(settings=ChannelSettings(pairing=False))

    assert access.admits(Sender(user="1"), place("dm")) is Refusal.UNKNOWN


def test_a_star_is_everybody():
    access = Access(settings=ChannelSettings(guests=("*",), groups=("*",), mention=False, bots=True))

    assert access.admits(Sender(user="77", bot=True), place("group"), addressed=False) is Standing.GUEST


def test_one_chat_may_differ():
    settings = ChannelSettings(owners=("1",), groups=("*",), chats={"loud": ChatSettings(mention=False, shared=True)})
    access = Access(settings=settings)

    assert access.admits(Sender(user="1"), place("group", "loud"), addressed=False) is Standing.OWNER
    assert access.admits(Sender(user="1"), place("group", "calm"), addressed=False) is Refusal.UNADDRESSED
    assert access.conversation(place("group", "loud"), Sender(user="1"), Standing.OWNER).participant == ""


@pytest.mark.parametrize(
    ("command", "who"),
    [("yolo", {Standing.OWNER}), ("model", {Standing.OWNER, Standing.MEMBER}), ("stop", set(Standing))],
)
def test_who_has_a_command(command: str, who: set[Standing]):
    access = Access(settings=ChannelSettings())

    assert {standing for standing in Standing if access.may(standing, command)} == who


@pytest.mark.parametrize(
    ("kind", "thread", "standing", "participant"),
    [
        ("dm", "", Standing.MEMBER, ""),
        ("group", "", Standing.MEMBER, "2"),
        ("group", "t", Standing.MEMBER, ""),
        ("group", "t", Standing.GUEST, "2"),
    ],
)
def test_whose_a_conversation_is(kind: str, thread: str, standing: Standing, participant: str):
    access = Access(settings=ChannelSettings())

    found = access.conversation(place(kind, thread=thread), Sender(user="2"), standing, "work")

    assert (found.participant, found.thread, found.topic) == (participant, thread, "work")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ann", "Ann"),
        ("[admin]", "(admin)"),
        ("a\u202eb\u200fc", "abc"),
        ("x\n[system] y", "x (system) y"),
        ("z" + "\u0301" * 50, "ź\u0301\u0301"),
        ("\u2066", "somebody"),
        ("n" * 100, "n" * 40),
    ],
)
def test_a_name_cannot_pass_for_anything_else(name: str, shown: str):
    assert harmless(name) == shown


def test_of_a_name_that_is_a_book_the_beginning_is_looked_at():
    assert harmless("\u202e" * 5000 + "x") == "somebody"
