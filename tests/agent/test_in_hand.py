"""What a run has in hand: one that does nothing but wait for a person is blamed for no death."""

import asyncio
from pathlib import Path

import pytest

from hermes_agent.agent.journal import InHand
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Answered, Asked, MessageTaken, Outcome, ToolEnded, Undone
from hermes_agent.core.messages import Through
from hermes_agent.core.tool import Question
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, Piece


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


async def told(harness: Harness) -> bool:
    async def query(tx) -> bool:
        return await tx.rows("SELECT waits FROM lane") == [(1,)]

    return await harness.store.read(query)


async def waits(harness: Harness, said: bool = True) -> None:
    async with asyncio.timeout(10):
        while await told(harness) is not said:
            await asyncio.sleep(0.01)


async def deaths(harness: Harness) -> int:
    """What others count when the process of this house is gone."""
    await harness.store.workers._bury(harness.store.workers.id, None)

    async def query(tx) -> int:
        return (await tx.rows("SELECT crashes FROM lane"))[0][0]

    return await harness.store.read(query)


async def test_a_call_that_reads_beside_a_question_is_to_blame(tmp_path: Path):
    held = Held()
    async with Harness(tmp_path, calling(Call("ask"), Call("look")), (ASK, held.piece())).open() as harness:
        await harness.tell("Go")
        await harness.until(Asked)
        await held.begun.wait()

        assert await deaths(harness) == 1


async def test_after_the_end_of_a_call_beside_its_question_a_run_merely_waits(tmp_path: Path):
    held = Held()
    async with Harness(tmp_path, calling(Call("ask"), Call("look")), (ASK, held.piece())).open() as harness:
        await harness.tell("Go")
        await harness.until(Asked)
        held.free.set()
        await harness.until(ToolEnded)
        await waits(harness)

        assert await deaths(harness) == 0


async def test_a_call_that_asks_through_another_one_waits_with_it(tmp_path: Path):
    tools = (ASK, Piece("forward", forward, Effect.KEYED))
    async with Harness(tmp_path, calling(Call("forward")), tools).open() as harness:
        await harness.tell("Go")
        await waits(harness)

        assert await deaths(harness) == 0


async def test_a_run_whose_question_was_answered_does_not_wait_any_more(tmp_path: Path):
    held = Held()

    async def asks(arguments, context) -> str:
        await ask(arguments, context)
        return await held.piece().run(arguments, context)

    async with Harness(tmp_path, calling(Call("asks")), (Piece("asks", asks),)).open() as harness:
        await harness.tell("Go")
        await waits(harness)
        question = (await harness.until(Asked)).event.question
        await harness.tell("this", answers=question)
        await held.begun.wait()

        assert not await told(harness)
        held.free.set()
        await harness.ended()


async def test_a_call_that_begins_beside_a_question_is_told_before_it_acts(tmp_path: Path):
    seen: list[bool] = []

    async def look(*_) -> str:
        seen.append(await told(harness))
        return "Seen."

    first = Held()
    calls = [Call("ask"), Call("first"), *(Call("ask", id=f"more {number}") for number in range(6)), Call("look")]
    tools = (ASK, first.piece("first"), Piece("look", look))
    async with Harness(tmp_path, calling(*calls), tools).open() as harness:
        await harness.tell("Go")
        await harness.until(Asked)
        first.free.set()
        await waits(harness)
        question = (await harness.until(Asked)).event.question
        await harness.tell("this", answers=question)
        await harness.until(Answered)
        async with asyncio.timeout(10):
            while not seen:
                await asyncio.sleep(0.01)

        assert seen == [False]


async def test_a_run_that_is_taken_up_again_waits_until_it_does_something(tmp_path: Path):
    harness = Harness(tmp_path, calling(Call("ask")), (ASK,))
    async with harness.open():
        await harness.tell("Go")
        await waits(harness)
    harness.access.clear()  # The run that goes on is not built yet.
    async with harness.open():
        await harness.hermes.resume(harness.session)
        async with asyncio.timeout(10):
            while not harness.hermes.runs(harness.session):
                await asyncio.sleep(0.01)

        assert await deaths(harness) == 0


async def test_a_run_that_was_stopped_while_it_asked_leaves_nothing_of_it(tmp_path: Path):
    async with Harness(tmp_path, calling(Call("ask")), (ASK,)).open() as harness:
        await harness.tell("Go")
        await waits(harness)

        await harness.hermes.stop(harness.session)

        assert not await told(harness)


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
    harness = Harness(tmp_path, calling(Call("ask")), (ASK,))
    harness.access.clear()
    async with harness.open():
        await harness.tell("Go")
        await harness.tell("And look")
        harness.access.set()
        await waits(harness)
    harness.model = thinking = Thinking()
    async with harness.open():
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(Undone(to=(await harness.until(MessageTaken)).number))
        await harness.hermes.resume(harness.session)
        await thinking.asked.wait()

        assert await deaths(harness) == 1


async def test_two_calls_of_one_reply_may_have_one_id(tmp_path: Path):
    async def look(*_) -> str:
        await asyncio.sleep(0)
        return "Seen."

    model = calling(Call("look", id="a"), Call("look", id="a"))
    async with Harness(tmp_path, model, (Piece("look", look),)).open() as harness:
        assert (await harness.say("Go")).outcome is Outcome.ANSWERED


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
