"""Who comes in is somebody, also where only a group says what they are."""

from itertools import product

import pytest

from hermes_agent.app.chats.settings import ChannelSettings, ChatSettings
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.gateway.access_control import LONGEST_NAME, MOST_NAMED, Access, AccessControl, Refusal, harmless
from hermes_agent.gateway.channel import Media, Quoted, Said, Sender


def test_who_is_known_by_a_group_alone_is_remembered():
    access = AccessControl({"p": ChannelSettings(members=("crew",), owners=("1",))})
    who = access.principal("p", Sender(user="7", name="Ann", groups=("crew",)), Standing.MEMBER)
    access.principal("p", Sender(user="1"), Standing.OWNER)

    assert (who.key, who.name, who.standing) == ("p:7", "Ann", Standing.MEMBER)
    assert access.people.standing("p:7") is Standing.MEMBER
    assert access.people.standing("p:8") is Standing.GUEST


@pytest.mark.parametrize(
    "name", ["", "ann@people.test", "ann\u200b@people.test", f"{'x' * 34} ANN@people.test", "[ann@people.test]"]
)
def test_a_name_is_no_way_for_an_id_to_be_told(name: str):
    access = AccessControl({"p": ChannelSettings()}, hidden=True)
    ann = Sender(user="ann@people.test", name=name)
    access.meet("p", ann, Conversation(platform="p"))

    who = access.principal("p", ann, Standing.MEMBER)

    assert "ann" not in f"{who.name} {who.alias}".lower()
    assert who.alias == access.pseudonyms.of("ann@people.test")
    assert 0 < len(who.name) <= LONGEST_NAME


def test_what_a_message_says_quotes_and_is_called_is_read_without_ids():
    access = AccessControl({"p": ChannelSettings()}, hidden=True)
    ann, name = "ann@people.test", access.pseudonyms.of("ann@people.test")
    access.pseudonyms.know(ann)
    file = Media(name=f"{ann}.pdf", media_type="", size=0, reference="")
    quoted = Quoted(text=f"> {ann}", media=(file,))
    where = Conversation(platform="p")
    said = Said(
        source_id="1", where=where, sender=Sender(user="7"), text=ann, at=0.0, media=(file,), quoted=quoted, title=ann
    )

    read = access.read("p", said)

    assert (read.text, read.title, read.quoted.text) == (name, name, f"> {name}")
    assert [each.name for each in (*read.media, *read.quoted.media)] == [f"{name}.pdf"] * 2
    assert AccessControl({}).read("p", said) == said


def test_whom_a_message_names_is_hidden_and_nobody_floods_what_is():
    access = AccessControl({"p": ChannelSettings(owners=("owner@people.test",))}, hidden=True)
    access.follow(access.people.channels, True)
    named = tuple(f"x{number}@people.test" for number in range(3000))
    where = Conversation(platform="p")
    for begin in range(0, 3000, MOST_NAMED):
        text = f"owner@people.test {named[begin]}"
        said = Said(source_id="1", where=where, sender=Sender(user="7"), text=text, at=0.0, named=named[begin:])
        assert "people.test" not in access.read("p", said).text


def test_without_settings_a_channel_lets_nobody_in():
    assert AccessControl({}).access("p").standing("1") is None


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
