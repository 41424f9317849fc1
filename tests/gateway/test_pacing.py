"""Turns are given out at the pace of the platform, and one chat's wait is nobody else's."""

from hermes_agent.core.inbound import Conversation
from hermes_agent.gateway.channel import Pace
from hermes_agent.gateway.pacing import MANY, Pacer
from hermes_agent.testing.clock import FakeClock


def chat(name: str = "1", kind: str = "dm") -> Conversation:
    return Conversation(platform="p", chat_kind=kind, chat=name)


async def test_a_chat_gets_one_turn_after_the_other():
    clock = FakeClock(auto=True)
    pacer = Pacer(Pace(chat=1.0, group=3.0), clock)
    for where in (chat(), chat(), chat("2"), chat("9", "group"), chat("9", "group")):
        await pacer.turn(where)

    assert clock.monotonic() == 4.0


def test_all_chats_share_the_pace_of_the_platform():
    pacer = Pacer(Pace(every=0.5), FakeClock())

    assert [pacer.reserve(chat(str(number))) for number in range(3)] == [0.0, 0.5, 1.0]


def test_a_chat_that_waits_holds_nobody_up():
    pacer = Pacer(Pace(every=0.5), FakeClock())
    pacer.hold(30.0, chat("1"))

    assert pacer.reserve(chat("1")) == 30.0
    assert pacer.reserve(chat("2")) == 0.5


def test_a_platform_can_hold_everybody_back():
    pacer = Pacer(Pace(), FakeClock())
    pacer.hold(5.0)

    assert pacer.reserve(chat()) == 5.0


async def test_chats_whose_turn_has_come_are_forgotten():
    clock = FakeClock()
    pacer = Pacer(Pace(chat=1.0), clock)
    for number in range(MANY):
        pacer.reserve(chat(str(number)))
    await clock.advance(2.0)
    pacer.reserve(chat("one more"))

    assert len(pacer._chats) == 1


async def test_a_sign_takes_a_turn_that_nobody_waits_for_and_none_of_the_chats():
    clock = FakeClock()
    pacer = Pacer(Pace(every=0.5, chat=2.0), clock)
    assert [pacer.has_room(chat()), pacer.has_room(chat("2"))] == [True, False]
    await clock.advance(0.5)
    assert pacer.reserve(chat()) == 0.5
    await clock.advance(1.0)

    assert [pacer.has_room(chat()), pacer.has_room(chat("2"))] == [False, True]
