"""What somebody is, by their key: at once, and by the rules that hold now."""

from hermes_agent.app.service.settings import ChannelSettings
from hermes_agent.core.inbound import Standing
from hermes_agent.gateway.doors import REMEMBERED, Doors
from hermes_agent.gateway.heard import Sender


def test_a_principal_is_what_the_rules_say_now():
    doors = Doors({"p": ChannelSettings(owners=("1",), members=("a:b",))})

    assert doors.standing("p:1") is Standing.OWNER
    assert doors.standing("p:a:b") is Standing.MEMBER
    assert doors.standing("p:9") is doors.standing("q:1") is Standing.GUEST
    assert doors.standing("cli:me") is Standing.OWNER

    doors.change({"p": ChannelSettings()})
    assert doors.standing("p:1") is Standing.GUEST


def test_who_was_let_in_is_a_member():
    doors = Doors({"p": ChannelSettings()})
    doors.let_in([("p", "5"), ("p", "6")])

    assert doors.standing("p:5") is Standing.MEMBER
    doors.let_in([])
    assert doors.standing("p:5") is Standing.GUEST


def test_who_is_known_by_a_group_alone_is_remembered():
    doors = Doors({"p": ChannelSettings(members=("crew",))})
    for user in range(REMEMBERED + 1):
        who = doors.principal("p", Sender(user=str(user), name="Ann", groups=("crew",)), Standing.MEMBER)
        assert (who.key, who.name, who.standing) == (f"p:{user}", "Ann", Standing.MEMBER)

    assert doors.standing(f"p:{REMEMBERED}") is Standing.MEMBER
    assert doors.standing("p:0") is Standing.GUEST
