"""What the members of a mixture say, and who answers."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import LostLease, ServerFailed
from hermes_agent.core.messages import Message, ModelRequest, Origin, Prefix, Remark, Reply, Role, ToolCall, said
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.providers.mixture import Mixture
from hermes_agent.providers.settings import MixtureSettings
from hermes_agent.testing.scripted import ScriptedModel

PREFIX = Prefix(system="Be careful.", tools=(), hash="0")
HI = said("Who wins?")


class Voice(ScriptedModel):
    """A scripted model that sees."""

    sees = True


def request(*messages: Message, run: str = "r", **more: object) -> ModelRequest:
    return ModelRequest(
        call_id="c1", session="s", run=run, turn=1, purpose="chat", prefix=PREFIX, messages=messages or (HI,), **more
    )


def mixture(*scripts: object, unusable=(), **settings: object) -> tuple[Mixture, list[Voice], Voice]:
    members = [Voice(script, name=f"v/{number}") for number, script in enumerate(scripts)]
    aggregator = Voice(lambda heard: Say(f"Out of {len(heard.messages)}."), name="v/all")
    made = Mixture(
        "moa/council",
        members=members,
        aggregator=aggregator,
        settings=MixtureSettings(**settings),
        clock=SystemClock(),
        unusable=unusable,
    )
    return made, members, aggregator


async def asked(model: Mixture, question: ModelRequest) -> tuple[str, list[str]]:
    items = [item async for item in model.ask(question)]
    (reply,) = [item for item in items if isinstance(item, Reply)]
    return reply.message.text, [item.text for item in items if isinstance(item, Remark)]


def says(text: str) -> Callable[[Heard], Say]:
    return lambda _: Say(text)


async def test_the_aggregator_is_told_what_the_members_said_of_the_same_conversation():
    model, members, aggregator = mixture(says("Red."), says("Blue."))

    words, remarks = await asked(model, request(deadline=1e12))

    assert (words, remarks) == ("Out of 2.", [])
    for number, member in enumerate(members, 1):
        (question,) = member.requests
        assert question.messages == (HI,)
        assert (question.purpose, question.use_tools, question.call_id) == ("mixture", False, f"c1m{number}")
        assert question.deadline < 1e12
    told = aggregator.requests[0].messages[1]
    assert "Model 1:\nRed." in told.text
    assert "Model 2:\nBlue." in told.text
    assert {part.origin for part in told.parts} == {Origin.MODEL}
    assert (aggregator.requests[0].purpose, aggregator.requests[0].call_id) == ("chat", "c1")
    assert (model.name, model.window, model.sees) == ("moa/council", aggregator.window, True)


def after_a_call() -> list[Message]:
    call = ToolCall(id="t", name="look", arguments={})
    return [HI, Message(role=Role.ASSISTANT, parts=(call,)), Message(role=Role.TOOL, parts=())]


async def test_members_are_asked_once_for_each_message_and_what_they_said_stays_where_it_was():
    model, (member,), aggregator = mixture(says("Red."))
    await asked(model, request())
    await asked(model, request(*after_a_call()))
    await asked(model, request(*after_a_call(), said("A note.", Origin.RUNTIME)))
    assert len(member.requests) == 1

    await asked(model, request(*after_a_call(), said("And now?")))
    assert len(member.requests) == 2
    views = [[message.text[:9] for message in each.messages] for each in aggregator.requests]
    assert [view[1] for view in views] == ["[Before y"] * 4
    assert views[3][4:] == ["And now?", "[Before y"]
    assert aggregator.requests[1].messages[1] is aggregator.requests[0].messages[1]


async def test_the_next_run_asks_anew_and_so_does_a_conversation_that_was_shortened():
    model, (member,), aggregator = mixture(says("Red."))
    await asked(model, request(HI, said("More."), said("Still more.")))
    await asked(model, request(HI))
    await asked(model, request(HI, run="r2"))

    assert len(member.requests) == 3
    assert [len(each.messages) for each in aggregator.requests] == [4, 2, 2]


async def test_members_may_be_asked_before_every_turn():
    model, (member,), aggregator = mixture(says("Red."), every_turn=True)
    await asked(model, request())
    await asked(model, request(*after_a_call()))

    assert len(member.requests) == 2
    assert [message.text[:7] for message in aggregator.requests[1].messages][-1] == "[Before"


@pytest.mark.parametrize("change", [{"purpose": "compression"}, {"use_tools": False}, {"prefill": True}])
async def test_what_is_not_a_turn_of_the_conversation_goes_to_the_aggregator_alone(change):
    model, (member,), aggregator = mixture(says("Red."))
    await asked(model, replace(request(), **change))

    assert member.requests == []
    assert len(aggregator.requests[0].messages) == 1


def fails(error: Exception) -> Callable[[Heard], Say]:
    def script(_heard: Heard) -> Say:
        raise error

    return script


async def test_a_member_that_fails_is_named_and_the_others_are_heard():
    model, _, aggregator = mixture(fails(ServerFailed("It is down.")), says("Blue."), unusable=[("v/9", "No key.")])
    _, remarks = await asked(model, request())
    _, later = await asked(model, request(said("Again?"), run="r2"))

    assert remarks == ["v/9 had no opinion: No key.", "v/0 had no opinion: It is down."]
    assert later == ["v/0 had no opinion: It is down."]
    assert "1 other models" in aggregator.requests[0].messages[1].text


async def test_where_no_member_has_an_opinion_the_aggregator_answers_alone():
    model, _, aggregator = mixture(says(" "), fails(ServerFailed("It is down.")))
    words, remarks = await asked(model, request())

    assert words == "Out of 1."
    assert remarks[-1] == "No member of moa/council had an opinion; v/all answers alone."
    assert aggregator.requests[0].messages == (HI,)


async def test_a_lost_lease_ends_it():
    model, _, aggregator = mixture(fails(LostLease("gone")))

    with pytest.raises(LostLease, match="gone"):
        await asked(model, request())
    assert aggregator.requests == []
