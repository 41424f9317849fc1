"""Who comes in is somebody, also where only a group says what they are."""

import pytest

from hermes_agent.app.service.settings import ChannelSettings
from hermes_agent.core.inbound import Conversation, Standing
from hermes_agent.gateway.access import LONGEST_NAME
from hermes_agent.gateway.doors import Doors
from hermes_agent.gateway.heard import Sender


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


def test_without_settings_a_channel_lets_nobody_in():
    assert Doors({}).access("p").standing("1") is None
