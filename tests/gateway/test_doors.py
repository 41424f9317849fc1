"""Who comes in is somebody, also where only a group says what they are."""

import pytest

from hermes_agent.app.service.settings import ChannelSettings
from hermes_agent.core.inbound import Conversation, Standing
from hermes_agent.gateway.access import LONGEST_NAME
from hermes_agent.gateway.doors import MOST_NAMED, Doors
from hermes_agent.gateway.heard import Media, Quoted, Said, Sender


def test_who_is_known_by_a_group_alone_is_remembered():
    doors = Doors({"p": ChannelSettings(members=("crew",), owners=("1",))})
    who = doors.principal("p", Sender(user="7", name="Ann", groups=("crew",)), Standing.MEMBER)
    doors.principal("p", Sender(user="1"), Standing.OWNER)

    assert (who.key, who.name, who.standing) == ("p:7", "Ann", Standing.MEMBER)
    assert doors.people.standing("p:7") is Standing.MEMBER
    assert doors.people.standing("p:8") is Standing.GUEST


@pytest.mark.parametrize(
    "name", ["", "ann@people.test", "ann\u200b@people.test", f"{'x' * 34} ANN@people.test", "[ann@people.test]"]
)
def test_a_name_is_no_way_for_an_id_to_be_told(name: str):
    doors = Doors({"p": ChannelSettings()}, hidden=True)
    ann = Sender(user="ann@people.test", name=name)
    doors.meet("p", ann, Conversation(platform="p"))

    who = doors.principal("p", ann, Standing.MEMBER)

    assert "ann" not in f"{who.name} {who.alias}".lower()
    assert who.alias == doors.veil.of("ann@people.test")
    assert 0 < len(who.name) <= LONGEST_NAME


def test_what_a_message_says_quotes_and_is_called_is_read_without_ids():
    doors = Doors({"p": ChannelSettings()}, hidden=True)
    ann, name = "ann@people.test", doors.veil.of("ann@people.test")
    doors.veil.know(ann)
    file = Media(name=f"{ann}.pdf", media_type="", size=0, fetch=None)
    quoted = Quoted(text=f"> {ann}", media=(file,))
    where = Conversation(platform="p")
    said = Said(
        source_id="1", where=where, sender=Sender(user="7"), text=ann, at=0.0, media=(file,), quoted=quoted, title=ann
    )

    read = doors.read("p", said)

    assert (read.text, read.title, read.quoted.text) == (name, name, f"> {name}")
    assert [each.name for each in (*read.media, *read.quoted.media)] == [f"{name}.pdf"] * 2
    assert Doors({}).read("p", said) == said


def test_whom_a_message_names_is_hidden_and_nobody_floods_what_is():
    doors = Doors({"p": ChannelSettings(owners=("owner@people.test",))}, hidden=True)
    doors.follow(doors.people.channels, True)
    named = tuple(f"x{number}@people.test" for number in range(3000))
    where = Conversation(platform="p")
    for begin in range(0, 3000, MOST_NAMED):
        text = f"owner@people.test {named[begin]}"
        said = Said(source_id="1", where=where, sender=Sender(user="7"), text=text, at=0.0, named=named[begin:])
        assert "people.test" not in doors.read("p", said).text


def test_without_settings_a_channel_lets_nobody_in():
    assert Doors({}).access("p").standing("1") is None
