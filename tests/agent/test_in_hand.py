"""What a run has in hand: one that does nothing but wait for a person is blamed for no death."""

import asyncio
from pathlib import Path

import pytest

from hermes_agent.agent.in_hand import InHand
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Answered, Asked, MessageTaken, Outcome, ToolEnded, Undone
from hermes_agent.core.model import Through
from hermes_agent.core.tool import Question
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.house import House, Piece


class Held:
    """A tool that goes on until it is let."""

    def __init__(self) -> None:
        self.begun, self.free = asyncio.Event(), asyncio.Event()

    def piece(self, name: str = "look") -> Piece:
        async def look(*_) -> str:
            self.begun.set()
            await self.free.wait()
            return "Seen."

        return Piece(name, look)


async def ask(_, context) -> str:
    return await context.ask(Question(text="Which?"))


ASK = Piece("ask", ask)


async def forward(_, context) -> str:
    return str(await context.use("ask", {}))


def calling(*calls: Call) -> ScriptedModel:
    return ScriptedModel([list(calls), Say("Done.")])


async def told(house: House) -> bool:
    async def query(tx) -> bool:
        return await tx.rows("SELECT waits FROM lane") == [(1,)]

    return await house.store.read(query)


async def waits(house: House, said: bool = True) -> None:
    async with asyncio.timeout(10):
        while await told(house) is not said:
            await asyncio.sleep(0.01)


async def deaths(house: House) -> int:
    """What others count when the process of this house is gone."""
    await house.store.workers._bury(house.store.workers.id, None)

    async def query(tx) -> int:
        return (await tx.rows("SELECT crashes FROM lane"))[0][0]

    return await house.store.read(query)


async def test_a_call_that_reads_beside_a_question_is_to_blame(tmp_path: Path):
    held = Held()
    async with House(tmp_path, calling(Call("ask"), Call("look")), (ASK, held.piece())).open() as house:
        await house.tell("Go")
        await house.until(Asked)
        await held.begun.wait()

        assert await deaths(house) == 1


async def test_after_the_end_of_a_call_beside_its_question_a_run_merely_waits(tmp_path: Path):
    held = Held()
    async with House(tmp_path, calling(Call("ask"), Call("look")), (ASK, held.piece())).open() as house:
        await house.tell("Go")
        await house.until(Asked)
        held.free.set()
        await house.until(ToolEnded)
        await waits(house)

        assert await deaths(house) == 0


async def test_a_call_that_asks_through_another_one_waits_with_it(tmp_path: Path):
    tools = (ASK, Piece("forward", forward, Effect.KEYED))
    async with House(tmp_path, calling(Call("forward")), tools).open() as house:
        await house.tell("Go")
        await waits(house)

        assert await deaths(house) == 0


async def test_a_run_whose_question_was_answered_does_not_wait_any_more(tmp_path: Path):
    held = Held()

    async def asks(arguments, context) -> str:
        await ask(arguments, context)
        return await held.piece().run(arguments, context)

    async with House(tmp_path, calling(Call("asks")), (Piece("asks", asks),)).open() as house:
        await house.tell("Go")
        await waits(house)
        question = (await house.until(Asked)).event.question
        await house.tell("this", answers=question)
        await held.begun.wait()

        assert not await told(house)
        held.free.set()
        await house.ended()


async def test_a_call_that_begins_beside_a_question_is_told_before_it_acts(tmp_path: Path):
    seen: list[bool] = []

    async def look(*_) -> str:
        seen.append(await told(house))
        return "Seen."

    first = Held()
    calls = [Call("ask"), Call("first"), *(Call("ask", id=f"more {number}") for number in range(6)), Call("look")]
    tools = (ASK, first.piece("first"), Piece("look", look))
    async with House(tmp_path, calling(*calls), tools).open() as house:
        await house.tell("Go")
        await house.until(Asked)
        first.free.set()
        await waits(house)
        question = (await house.until(Asked)).event.question
        await house.tell("this", answers=question)
        await house.until(Answered)
        async with asyncio.timeout(10):
            while not seen:
                await asyncio.sleep(0.01)

        assert seen == [False]


async def test_a_run_that_is_taken_up_again_waits_until_it_does_something(tmp_path: Path):
    house = House(tmp_path, calling(Call("ask")), (ASK,))
    async with house.open():
        await house.tell("Go")
        await waits(house)
    house.doors.clear()  # The run that goes on is not built yet.
    async with house.open():
        await house.hermes.resume(house.session)
        async with asyncio.timeout(10):
            while not house.hermes.runs(house.session):
                await asyncio.sleep(0.01)

        assert await deaths(house) == 0


async def test_a_run_that_was_stopped_while_it_asked_leaves_nothing_of_it(tmp_path: Path):
    async with House(tmp_path, calling(Call("ask")), (ASK,)).open() as house:
        await house.tell("Go")
        await waits(house)

        await house.hermes.stop(house.session)

        assert not await told(house)


class Thinking(Through):
    """A model that never answers."""

    def __init__(self) -> None:
        super().__init__(ScriptedModel([]))
        self.asked = asyncio.Event()

    async def ask(self, _):
        self.asked.set()
        await asyncio.Event().wait()
        yield


async def test_a_model_that_is_asked_after_a_question_was_taken_back_is_to_blame(tmp_path: Path):
    house = House(tmp_path, calling(Call("ask")), (ASK,))
    house.doors.clear()
    async with house.open():
        await house.tell("Go")
        await house.tell("And look")
        house.doors.set()
        await waits(house)
    house.model = thinking = Thinking()
    async with house.open():
        async with house.hermes.holding(house.session) as journal:
            await journal.commit(Undone(to=(await house.until(MessageTaken)).number))
        await house.hermes.resume(house.session)
        await thinking.asked.wait()

        assert await deaths(house) == 1


async def test_two_calls_of_one_reply_may_have_one_id(tmp_path: Path):
    async def look(*_) -> str:
        await asyncio.sleep(0)
        return "Seen."

    model = calling(Call("look", id="a"), Call("look", id="a"))
    async with House(tmp_path, model, (Piece("look", look),)).open() as house:
        assert (await house.say("Go")).outcome is Outcome.ANSWERED


@pytest.mark.parametrize(
    ("begun", "asking", "waits"),
    [
        ({}, set(), False),
        ({"a": ""}, set(), False),
        ({"a": ""}, {"a"}, True),
        ({"a": "", "b": ""}, {"a"}, False),
        ({"a": "", "a.1": "a"}, {"a.1"}, True),
        ({"a": "", "a.1": "a", "a.2": "a"}, {"a.1"}, False),
    ],
)
def test_a_run_waits_where_every_call_under_way_asks_or_has_another_one_ask(
    begun: dict[str, str], asking: set[str], waits: bool
):
    assert InHand(begun=begun, asking=asking).waits == waits
