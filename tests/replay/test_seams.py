"""The decks by themselves: what the world, a recording and a replay hand to a run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermes_agent.agent.agent import Proposed
from hermes_agent.agent.prompt import Environment
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import CassetteError, GoingInCircles
from hermes_agent.core.messages import Text, ToolCall
from hermes_agent.core.tool import Answer
from hermes_agent.replay.recorded_calls import RecordedCalls
from hermes_agent.replay.recorder import RecordedSource, tape
from hermes_agent.replay.replayer import Switching, When
from hermes_agent.replay.seam import Seam
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.schema import from_function
from tests.replay.tapes import SESSION, Box, Context, over, player, recorder

TOOL = from_function("look", lambda: "seen", "Look.", (), effect=Effect.READS)


def proposed(call: str = "k1") -> Proposed:
    context = Context(call)
    return Proposed(
        call=ToolCall(id=call, name="look", arguments={}),
        tool=TOOL,
        arguments={},
        facts=TOOL.facts({}, "/w"),
        context=context,
    )


@dataclass
class Circling:
    """A hook that ends the run, or marks the answer."""

    ends: bool = False
    seen: list[str] = field(default_factory=list)

    async def before_call(self, proposed: Proposed) -> None:
        self.seen.append("before")
        if self.ends:
            raise GoingInCircles("Enough.")

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        self.seen.append("after")
        return Answer(parts=(*answer.parts, Text(text="!")))


async def test_the_world_is_handed_on_as_it_is() -> None:
    clock, ids = FakeClock(), RandomIds(1)
    seam = Seam(clock, ids)

    async def look() -> Environment:
        return Environment(date="today")

    assert (seam.own("s").clock, seam.own("s").ids, seam.arrival()) == (clock, ids, clock.now())
    assert await seam.environment("s", look) == Environment(date="today")
    assert (seam.offered("s", (TOOL.schema,)), seam.tail("s", [])) == ((TOOL.schema,), [])


async def test_what_is_found_out_and_told_is_found_and_told_again(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    seam = tape

    @dataclass
    class Clockwork:
        name: str = "Time"

        async def words(self, session: str, heard: str) -> str:
            return f"{session} {heard}"

    async def look() -> Environment:
        return Environment(date="then")

    assert seam.offered(SESSION, (TOOL.schema,)) == (TOOL.schema,)
    assert (await seam.environment(SESSION, look)).date == "then"
    (source,) = seam.tail(SESSION, [Clockwork()])
    assert isinstance(source, RecordedSource)
    assert await source.words(SESSION, "Hi") == "s1 Hi"
    over(tape)

    again = await player(tmp_path, driven=True)
    (told,) = again.tail(SESSION, [])
    assert (await again.environment(SESSION, look)).date == "then"
    assert [each.name for each in again.offered(SESSION, ())] == ["look"]
    assert (told.name, await told.words(SESSION, "anything")) == ("Time", "s1 Hi")


async def test_a_run_that_a_hook_ends_is_ended_again(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    hooks = RecordedCalls(tape.track(SESSION)).around((Circling(ends=True),))
    with pytest.raises(GoingInCircles):
        await hooks.before_call(proposed())
    over(tape)

    made = await player(tmp_path)
    with pytest.raises(GoingInCircles, match="Enough"):
        await made.calls(SESSION).before_call(proposed())


async def test_what_the_hooks_make_of_an_answer_is_recorded(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    inner = Circling()
    hooks = RecordedCalls(tape.track(SESSION)).around((inner,))
    await hooks.before_call(proposed())
    then = await hooks.after_call(proposed(), Answer(parts=(Text(text="seen"),)))
    over(tape)

    permitted = (await player(tmp_path)).calls(SESSION)
    await permitted.before_call(proposed())
    now = await permitted.after_call(proposed(), Answer(parts=()))

    assert inner.seen == ["before", "after"]
    assert now == then
    assert [part.text for part in now.parts] == ["seen", "!"]


async def test_a_hook_stands_around_calls_only_once_they_are_live() -> None:
    inner, live = Circling(), [False]
    hook = When(hook=inner, needed=lambda: live[0])
    for _ in range(2):
        await hook.before_call(proposed())
        await hook.after_call(proposed(), Answer(parts=()))
        live[0] = True

    assert inner.seen == ["before", "after"]


def test_calls_go_to_the_recording_until_something_is_live() -> None:
    live = [False]
    box = Switching(is_live=lambda: live[0], recorded=Box(TOOL), own=Box())

    assert box.resolve("look", {})[0] is TOOL
    live[0] = True
    with pytest.raises(Exception, match="no tool"):
        box.resolve("look", {})


async def test_where_something_is_live_time_and_ids_are_those_of_now(tmp_path: Path) -> None:
    over(recorder(tmp_path))
    before = time.time()
    seam = await player(tmp_path, live_from=1)

    assert seam.own("x").clock.now() >= before
    assert seam.own("x").ids.short() != seam.own("x").ids.short()


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    for options in ({"record": "a", "replay": "b"}, {"nearest": True}, {"live_from": 2}):
        with pytest.raises(CassetteError):
            tape(**options)
    with pytest.raises(CassetteError, match="cannot be read"):
        tape(replay=str(tmp_path / "none"))
