"""What a call may use of its run."""

import asyncio
import time

from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import LostLease
from hermes_agent.core.events import ToolProgress
from hermes_agent.core.spending import Limits
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, Piece


async def test_a_call_knows_where_it_is_and_how_long_it_may_take(tmp_path):
    known = {}

    async def look(_, context):
        known.update(session=context.session, workspace=context.workspace, key=context.key, left=context.seconds_left())
        return "ok"

    model = ScriptedModel([Call("look", id="c1"), Say("Done.")])
    limits = lambda: Limits(deadline=time.monotonic() + 20)  # noqa: E731 - a value made when it is asked for
    async with Harness(tmp_path, model, (Piece("look", look),), limits=limits).open() as harness:
        await harness.say("Go")

        assert known.pop("left") < 20
        assert known == {
            "session": harness.session,
            "workspace": str(tmp_path),
            "key": f"{harness.session}-c1",
        }


async def test_without_a_limit_there_is_no_deadline(tmp_path):
    left = []

    async def look(_, context):
        left.append(context.seconds_left())
        return "ok"

    async with Harness(tmp_path, ScriptedModel([Call("look"), Say("Done.")]), (Piece("look", look),)).open() as harness:
        await harness.say("Go")

        assert left == [None]


async def test_progress_is_shown_and_not_kept(tmp_path):
    async def look(_, context):
        context.progress("half")
        return "ok"

    async with Harness(tmp_path, ScriptedModel([Call("look"), Say("Done.")]), (Piece("look", look),)).open() as harness:
        await harness.tell("Go")
        shown = [seen.event async for seen in harness.hermes.follow(harness.session, 0)]

        assert [event.text for event in shown if isinstance(event, ToolProgress)] == ["half"]
        assert "tool_progress" not in await harness.kinds()


async def test_a_call_made_again_has_the_handle_that_it_held(tmp_path):
    seen = []

    async def command(_, context):
        seen.append((context.attach, context.begun_at.handle))
        if len(seen) == 1:
            await context.hold("task 7")
            assert context.begun_at.handle == "task 7"
            raise LostLease("The process dies.")
        return "done"

    model = ScriptedModel([Call("command", id="c1"), Say("Done.")])
    harness = Harness(tmp_path, model, (Piece("command", command, Effect.EXEC),))
    async with harness.open():
        await harness.tell("Go")
        async with asyncio.timeout(5):
            while not seen:
                await asyncio.sleep(0.01)
    async with harness.open():
        await harness.hermes.resume(harness.session)
        await harness.ended(0)

    assert seen == [(False, ""), (True, "task 7")]
