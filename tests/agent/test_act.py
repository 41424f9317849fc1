"""What a call goes through, and what becomes of one that a crash interrupted."""

import asyncio
import json

import pytest

from hermes_agent.agent.act import INTERRUPTED
from hermes_agent.agent.agent import Proposed
from hermes_agent.core.effects import Effect, Location
from hermes_agent.core.errors import LostLease, Refused, ToolError
from hermes_agent.core.events import Asked, Notice, Outcome, ToolEnded, ToolStarted, Undone
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer, Question
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import BrokenToolJson
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, Piece, interrupted, tool


class Watcher:
    """A hook that notes what it sees, and may refuse or change."""

    def __init__(self, name: str, seen: list[str], refuse: str = "") -> None:
        self.name, self.seen, self.refuse = name, seen, refuse

    async def before_call(self, proposed: Proposed) -> None:
        self.seen.append(f"{self.name} before {proposed.call.name}")
        if self.refuse:
            raise Refused(self.refuse, hint="Try something else.")

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        self.seen.append(f"{self.name} after {proposed.call.name}")
        return Answer(parts=(*answer.parts, Text(text=f" {self.name}", origin=Origin.RUNTIME)))


def done() -> ScriptedModel:
    return ScriptedModel([Say("Unused."), Say("Done.")])


async def test_a_read_that_was_interrupted_runs_again(tmp_path):
    look = tool("look", "blue")
    async with Harness(tmp_path, done(), (look,)).open() as harness:
        await interrupted(harness, Call("look"))
        ended = await harness.say("", resumes=True)

        assert ended.text == "Done."
        assert look.calls == [{}]
        assert "tool: blue" in await harness.transcript()
        assert any(isinstance(entry.event, Notice) for entry in await harness.log())


async def test_a_keyed_call_that_was_interrupted_runs_again_with_the_same_key(tmp_path):
    keys = []

    async def send(_, context):
        keys.append((context.key, context.attach))
        return "sent"

    async with Harness(tmp_path, done(), (Piece("send", send, Effect.KEYED),)).open() as harness:
        await interrupted(harness, Call("send", id="k1"))
        await harness.say("", resumes=True)

        assert keys == [(f"{harness.session}-k1", True)]
        assert await harness.store.effects.open(harness.session) == []


async def test_a_command_that_was_interrupted_is_attached_to(tmp_path):
    seen = []

    async def command(_, context):
        seen.append(context.attach)
        return "it had gone on"

    model = ScriptedModel([Say("Unused."), Call("command", id="second"), Say("Done.")])
    async with Harness(tmp_path, model, (Piece("command", command, Effect.EXEC),)).open() as harness:
        await interrupted(harness, Call("command"))
        await harness.say("", resumes=True)

        assert seen == [True, False]
        assert "tool: it had gone on" in await harness.transcript()


async def test_a_command_is_told_where_its_interrupted_attempt_was_to_be_recorded(tmp_path):
    seen, at = [], [Location(machine="north", place="local:/exec:1", boot="a")]

    async def where(workspace):
        assert workspace == str(tmp_path)
        return at[0]

    async def command(_, context):
        seen.append((context.attach, context.begun_at))
        if len(seen) == 1:
            raise LostLease("The process dies.")
        return "unknown"

    model = ScriptedModel([Call("command", id="c1"), Say("Done.")])
    harness = Harness(tmp_path, model, (Piece("command", command, Effect.EXEC),), location=where)
    async with harness.open():
        await harness.tell("Go")
        async with asyncio.timeout(5):
            while not seen:
                await asyncio.sleep(0.01)
    at[0] = Location(machine="south", place="local:/exec:2", boot="b")
    async with harness.open():
        await harness.hermes.resume(harness.session)
        await harness.ended(0)

    assert seen == [(False, Location()), (True, Location(machine="north", place="local:/exec:1", boot="a"))]


async def test_a_call_whose_place_cannot_be_asked_is_no_intent(tmp_path):
    async def nowhere(_):
        raise ToolError("The place cannot be reached.")

    command = tool("command", effect=Effect.EXEC)
    async with Harness(
        tmp_path, ScriptedModel([Call("command"), Say("Done.")]), (command,), location=nowhere
    ).open() as harness:
        await harness.say("Go")

        assert command.calls == []
        assert "tool_started" not in await harness.kinds()
        assert "The place cannot be reached." in (await harness.transcript())[2]


async def test_a_write_that_was_interrupted_is_told_and_not_run_again(tmp_path):
    change = tool("change", effect=Effect.WRITES)
    async with Harness(tmp_path, done(), (change,)).open() as harness:
        await interrupted(harness, Call("change"))
        await harness.say("", resumes=True)

        assert change.calls == []
        answer = json.loads((await harness.transcript())[2].removeprefix("tool: "))
        assert answer == {"error": INTERRUPTED, "kind": "interrupted"}
        assert await harness.store.effects.open(harness.session) == []


async def test_a_write_whose_intent_was_not_committed_runs(tmp_path):
    change = tool("change", effect=Effect.WRITES)
    async with Harness(tmp_path, done(), (change,)).open() as harness:
        await interrupted(harness, Call("change"), begun=False)
        await harness.say("", resumes=True)

        assert change.calls == [{}]


async def test_hooks_run_in_order_before_and_in_reverse_after(tmp_path):
    seen: list[str] = []
    hooks = (Watcher("one", seen), Watcher("two", seen))
    model = ScriptedModel([Call("look"), Say("Done.")])
    async with Harness(tmp_path, model, (tool("look"),), hooks=hooks).open() as harness:
        await harness.say("Go")

        assert seen == ["one before look", "two before look", "two after look", "one after look"]
        assert "tool: ok two one" in await harness.transcript()


async def test_a_refused_call_has_no_intent_and_does_not_run(tmp_path):
    change = tool("change", effect=Effect.WRITES)
    model = ScriptedModel([Call("change"), Say("Done.")])
    async with Harness(tmp_path, model, (change,), hooks=(Watcher("one", [], refuse="Not today."),)).open() as harness:
        await harness.say("Go")

        assert change.calls == []
        assert "tool_started" not in await harness.kinds()
        seen_by_the_hook = (await harness.transcript())[2].removeprefix("tool: ")
        answer = json.loads(seen_by_the_hook.removesuffix(" one"))
        assert seen_by_the_hook.endswith(" one")
        assert answer == {"error": "Not today.", "kind": "refused", "hint": "Try something else."}


async def test_permission_is_not_asked_again_for_a_call_that_had_begun(tmp_path):
    seen: list[str] = []
    async with Harness(
        tmp_path, done(), (tool("command", effect=Effect.EXEC),), hooks=(Watcher("one", seen),)
    ).open() as harness:
        await interrupted(harness, Call("command"))
        await harness.say("", resumes=True)

        assert seen == ["one after command"]


async def test_arguments_that_are_no_json_are_an_answer(tmp_path):
    model = ScriptedModel([BrokenToolJson("look"), Say("Sorry.")])
    async with Harness(tmp_path, model, (tool("look"),)).open() as harness:
        ended = await harness.say("Go")

        answer = json.loads((await harness.transcript())[2].removeprefix("tool: "))
        assert ended.text == "Sorry."
        assert answer["error"].startswith("The arguments are not a JSON object: {")
        assert answer["hint"] == "Send the call again as valid JSON."


@pytest.mark.parametrize("count", [1, 3])
async def test_a_lost_lease_stops_the_writing_at_once(tmp_path, count):
    """Alone and in a batch: the call whose result cannot be kept ends the run without another word in the log."""

    async def lose(_, __):
        await harness.store.write(taken_over)
        return "done"

    async def taken_over(tx):
        await tx.run("UPDATE lane SET owner = $2, epoch = epoch + 1 WHERE id = $1", harness.session, "another")

    model = ScriptedModel([[Call("lose", {"n": n}) for n in range(count)], Say("Never.")])
    async with Harness(tmp_path, model, (Piece("lose", lose, Effect.READS),)).open() as harness:
        await harness.tell("Go")
        while not harness.tools[0].calls or harness.hermes.runs(harness.session):
            await asyncio.sleep(0.005)

        assert not {"tool_ended", "run_ended"} & set(await harness.kinds())


async def test_a_process_that_was_frozen_for_too_long_does_not_touch_the_world(tmp_path):
    """Between the intent and the effect the process was away: the call does not run."""
    change = tool("change", effect=Effect.WRITES)

    class Freeze(Watcher):
        async def before_call(self, proposed: Proposed) -> None:
            harness.store.workers.generation += 1

    model = ScriptedModel([Call("change"), Say("Never.")])
    async with Harness(tmp_path, model, (change,), hooks=(Freeze("freeze", []),)).open() as harness:
        await harness.tell("Go")
        await harness.until(ToolStarted)
        while harness.hermes.runs(harness.session):
            await asyncio.sleep(0.005)

        assert change.calls == []
        assert not [entry for entry in await harness.log() if isinstance(entry.event, ToolEnded)]


async def test_calls_of_one_turn_stop_together_when_the_lease_is_lost(tmp_path):
    class Away(Watcher):
        async def before_call(self, proposed: Proposed) -> None:
            raise LostLease("Another worker continues.")

    model = ScriptedModel([[Call("look"), Call("look")], Say("Never.")])
    look = tool("look")
    async with Harness(tmp_path, model, (look,), hooks=(Away("away", []),)).open() as harness:
        await harness.tell("Go")
        while (await harness.kinds())[-1:] != ["replied"] or harness.hermes.runs(harness.session):
            await asyncio.sleep(0.005)

        assert look.calls == []


async def test_an_id_that_was_taken_back_is_not_used_again(tmp_path):
    """After an undo the model may give a call the id of one that was taken back, with its answer and its key."""
    keys = []

    async def note(_, context):
        keys.append(context.key)
        return await context.ask(Question(text="Sure?", purpose="approval"))

    model = ScriptedModel([Call("note", id="call_0"), Say("Done.")])
    async with Harness(tmp_path, model, (Piece("note", note, Effect.ASKS),)).open() as harness:
        for round_ in range(2):
            before = (await harness.log())[-1].number if round_ else 0
            await harness.tell("Go")
            asked = (await harness.until(Asked, before)).event
            await harness.tell(f"yes {round_}", answers=asked.question)
            assert (await harness.ended(before)).outcome is Outcome.ANSWERED
            if not round_:
                await take_back(harness)

        assert keys[0] == f"{harness.session}-call_0"
        assert keys[1].startswith(f"{harness.session}-call_0_")
        assert "tool: yes 1" in await harness.transcript()


async def take_back(harness: Harness) -> None:
    async with harness.hermes.holding(harness.session) as journal:
        await journal.commit(Undone(to=0))


async def use_both(_, context):
    first = await context.use("look", {})
    second = await context.use("write", {})
    return f"{first.parts[0].text} {second.is_error}"


async def test_a_call_that_a_tool_makes_goes_the_way_of_every_call(tmp_path):
    seen = []
    tools = (Piece("outer", use_both, Effect.WRITES), tool("look", "blue"), tool("write", effect=Effect.WRITES))
    model = ScriptedModel([Call("outer", id="c1"), Say("Done.")])
    async with Harness(tmp_path, model, tools, hooks=(Watcher("w", seen),)).open() as harness:
        await harness.say("Go")
        events = [entry.event for entry in await harness.log()]

        ended = {event.call_id: event.tool for event in events if isinstance(event, ToolEnded)}
        assert ended == {"c1.1": "look", "c1.2": "write", "c1": "outer"}
        assert [event.call_id for event in events if isinstance(event, ToolStarted)] == ["c1", "c1.2"]
        assert seen == [
            "w before outer",
            "w before look",
            "w after look",
            "w before write",
            "w after write",
            "w after outer",
        ]
        assert [line for line in await harness.transcript() if line.startswith("tool:")] == ["tool: blue False w"]


async def test_a_refusal_is_the_answer_to_the_tool_that_made_the_call(tmp_path):
    class Refusing(Watcher):
        async def before_call(self, proposed: Proposed) -> None:
            if proposed.call.name == "write":
                raise Refused("Not that.")

        async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
            return answer

    written = tool("write", effect=Effect.WRITES)
    tools = (Piece("outer", use_both, Effect.WRITES), tool("look", "blue"), written)
    model = ScriptedModel([Call("outer"), Say("Done.")])
    async with Harness(tmp_path, model, tools, hooks=(Refusing("r", []),)).open() as harness:
        await harness.say("Go")

        assert written.calls == []
        assert any("True" in line for line in await harness.transcript())


async def test_a_call_that_a_tool_made_makes_none(tmp_path):
    async def inner(_, context):
        return (await context.use("look", {})).parts[0].text

    async def outer(_, context):
        return (await context.use("inner", {})).parts[0].text

    look = tool("look", "blue")
    tools = (Piece("outer", outer, Effect.WRITES), Piece("inner", inner, Effect.WRITES), look)
    async with Harness(tmp_path, ScriptedModel([Call("outer"), Say("Done.")]), tools).open() as harness:
        await harness.say("Go")

        assert look.calls == []
        assert any("may make none itself" in line for line in await harness.transcript())
