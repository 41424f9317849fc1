"""A branch of a session: what of its log and its runs the copy has."""

from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Branched,
)
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, interrupted, tool


def counting():
    model = ScriptedModel(lambda heard: Say(f"Reply {len(model.requests)}."))
    return model


async def test_a_branch_of_a_run_that_was_interrupted_does_not_go_on_with_it(tmp_path):
    change = tool("change", effect=Effect.WRITES)
    async with Harness(tmp_path, counting(), (change,)).open() as harness:
        await interrupted(harness, Call("change"), begun=False)
        source = await harness.hermes.record(harness.session)
        branch = await harness.hermes.branch(source)
        harness.session = branch.id
        after = (await harness.log())[-1].number
        await harness.say("Something else")

        assert change.calls == []
        kinds = [entry.event.kind for entry in (await harness.log())[after:]]
        assert kinds[:2] == ["run_started", "message_taken"]
        assert "Not run" in (await harness.transcript())[2]


async def test_a_branch_up_to_a_number_knows_nothing_of_what_came_after(tmp_path):
    async with Harness(tmp_path, counting()).open() as harness:
        await harness.say("One")
        number = (await harness.log())[-1].number
        await harness.say("Two")
        source = await harness.hermes.record(harness.session)
        branch = await harness.hermes.branch(source, "Before", upto=number)
        harness.session = branch.id

        assert await harness.transcript() == ["user: One", "assistant: Reply 1."]
        last = (await harness.log())[-1].event
        assert isinstance(last, Branched)
        assert (last.session, last.upto, branch.title) == (source.id, number, "Before")


async def test_a_branch_has_the_runs_of_its_copy_and_ends_where_the_log_does(tmp_path):
    async with Harness(tmp_path, counting()).open() as harness:
        await harness.say("One")
        log = await harness.log()
        source = await harness.hermes.record(harness.session)
        branch = await harness.hermes.branch(source, upto=2**53 - 1)
        run, history = log[-1].run, harness.hermes.store.history

        assert [entry.number async for page in history.of_run(branch.id, run) for entry in page] == [
            entry.number for entry in log if entry.run == run
        ]
        harness.session = branch.id
        assert (await harness.log())[-1].event == Branched(session=source.id, upto=log[-1].number)
