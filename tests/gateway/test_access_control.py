"""Who comes in is somebody, also where only a group says what they are."""

import pytest

from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.core.inbound import Conversation, Standing
from hermes_agent.gateway.access import LONGEST_NAME
from hermes_agent.gateway.access_control import MOST_NAMED, AccessControl
from hermes_agent.gateway.inbound_events import Media, Quoted, Said, Sender


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
