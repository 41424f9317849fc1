"""What steers the run under way."""

import asyncio

import pytest

from hermes_agent.core.chat import Busy
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import MessageTaken, Outcome, ToolStarted
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Hang
from tests.app.place import counting, place, spoken


async def test_continue_goes_on_with_a_run_that_reached_its_limit(tmp_path):
    def script(heard):
        return Say("So far.") if not heard.use_tools else Call("todo", {})

    async with place(tmp_path, script, more="agent:\n  max_turns: 1\n") as here:
        assert (await here.say("Go")).outcome is Outcome.LIMIT
        done = await here.type("/continue")
        assert done.submit.resumes
        assert (await here.say(done.submit)).turns == 2
        assert (await here.transcript())[-2] != "user: Go"


async def test_stop_ends_the_run_under_way(tmp_path):
    async with place(tmp_path, [Hang()]) as here:
        assert await here.text("/stop") == "Nothing is running."
        after = await here.tell("Go")
        await here.until(MessageTaken)
        assert await here.text("/stop", busy=True) == "Stopped."
        assert (await here.ended(after)).outcome is Outcome.STOPPED


async def test_steer_is_read_at_the_next_turn_and_queue_at_the_end(tmp_path):
    def script(heard):
        if spoken(heard) == 0:
            return Call("terminal", {"command": "until test -e go; do sleep 0.02; done", "timeout": 10})
        return counting(heard)

    async with place(tmp_path, script, more="approvals:\n  mode: off\n") as here:
        after = await here.tell("Go")
        await here.until(ToolStarted)
        queued = await here.type("/queue Later", busy=True)
        steered = await here.type("/steer Now", busy=True)
        assert (queued.submit.busy, steered.submit.busy) == (Busy.QUEUE, Busy.STEER)
        await here.tell(queued.submit)
        await here.tell(steered.submit)
        (tmp_path / "work/go").touch()
        await here.ended(after)
        while len(await here.transcript()) < 5:
            await asyncio.sleep(0.01)

        assert await here.transcript() == [
            "user: Go",
            "user: Now",
            "assistant: Reply 2.",
            "user: Later",
            "assistant: Reply 3.",
        ]


@pytest.mark.parametrize("line", ["/steer", "/queue"])
async def test_steering_needs_words(tmp_path, line):
    async with place(tmp_path, counting) as here:
        with pytest.raises(HermesError, match="Say what"):
            await here.type(line)
