"""Who comes in is somebody, also where only a group says what they are."""

from hermes_agent.app.service.settings import ChannelSettings
from hermes_agent.core.inbound import Standing
from hermes_agent.gateway.doors import Doors
from hermes_agent.gateway.heard import Sender


def test_who_is_known_by_a_group_alone_is_remembered():
    doors = Doors({"p": ChannelSettings(members=("crew",), owners=("1",))})
    who = doors.principal("p", Sender(user="7", name="Ann", groups=("crew",)), Standing.MEMBER)
    doors.principal("p", Sender(user="1"), Standing.OWNER)

    assert (who.key, who.name, who.standing) == ("p:7", "Ann", Standing.MEMBER)
    assert doors.people.standing("p:7") is Standing.MEMBER
    assert doors.people.standing("p:8") is Standing.GUEST


def test_without_settings_a_channel_lets_nobody_in():
    assert Doors({}).access("p").standing("1") is None
