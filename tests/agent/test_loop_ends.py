"""How a run ends, and what of it is there when the next one begins."""

import errno
from dataclasses import replace

import pytest

from hermes_agent.agent.loop import CUT_OFF, GO_ON, MAX_CONTINUATIONS, STILL_CUT, SUM_UP, spoken
from hermes_agent.agent.prompt import Environment, SessionPrompt
from hermes_agent.agent.session import Session
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import DiskFull, NoModel
from hermes_agent.core.events import MessageTaken, Notice, Outcome, RunEnded, ToolStarted
from hermes_agent.core.messages import Message, Origin, Role, StopReason, Text, ToolResult, said
from hermes_agent.core.spending import Limits
from hermes_agent.providers.demo.script import Answer, Call, Say
from hermes_agent.runs.one_run import told_of
from hermes_agent.testing.faults import Hang, Status
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, interrupted, replied, tool


def cut(text: str) -> Answer:
    return Answer(pieces=(Say(text),), stop=StopReason.LENGTH)


async def test_a_reply_that_was_cut_goes_on_and_is_whole(tmp_path):
    async with Harness(tmp_path, ScriptedModel([cut("One, "), cut("two, "), Say("three.")])).open() as harness:
        ended = await harness.say("Count")

        assert ended.text == "One, two, three."
        assert (await harness.transcript()).count(f"user: {GO_ON}") == 2


def test_a_warning_between_the_pieces_of_a_reply_does_not_part_them():
    pieces = [Message(role=Role.ASSISTANT, parts=(Text(text=text),)) for text in ("One, ", "two.")]
    warning, question = said("84 % of the money is used.", Origin.RUNTIME), said("Count", Origin.OWNER)

    assert spoken(Session(id="s", messages=[question, pieces[0], CUT_OFF, warning, pieces[1]])) == ["One, ", "two."]
    assert spoken(Session(id="s", messages=[pieces[0], question, warning, pieces[1]])) == ["two."]


async def test_a_reply_that_is_cut_for_ever_ends(tmp_path):
    model = ScriptedModel(lambda heard: cut("la "))
    async with Harness(tmp_path, model).open() as harness:
        ended = await harness.say("Sing")

        assert ended.text == "la " * (MAX_CONTINUATIONS + 1) + "\n\n" + STILL_CUT
        assert (ended.outcome, ended.reason) == (Outcome.LIMIT, "length limit")
        assert len(model.requests) == MAX_CONTINUATIONS + 1


async def test_a_ring_without_mail_does_not_shorten_a_reply_that_was_cut(tmp_path):
    """Any process that rings makes every run here look for mail."""

    class Rung(ScriptedModel):
        async def ask(self, request):
            harness.hermes._scheduler._running[harness.session].journal.mailbox.ring()
            async for piece in super().ask(request):
                yield piece

    harness = Harness(tmp_path, Rung([cut("One, "), Say("two.")]))
    async with harness.open():
        assert (await harness.say("Count")).text == "One, two."


async def test_a_reply_that_was_cut_is_whole_also_after_a_crash_in_its_middle(tmp_path):
    async with Harness(tmp_path, ScriptedModel(lambda heard: Say("two."))).open() as harness:
        await interrupted(harness)
        async with harness.hermes.holding(harness.session) as journal:
            words = Message(role=Role.ASSISTANT, parts=(Text(text="One, "),))
            go_on = Message(role=Role.USER, parts=(Text(text=GO_ON, origin="runtime"),))
            await journal.commit(replied(words), MessageTaken(message=go_on))
        ended = await harness.say("", resumes=True)

        assert ended.text == "One, two."


async def test_a_run_that_died_between_its_reply_and_its_end_ends_with_the_reply(tmp_path):
    model = ScriptedModel([])
    async with Harness(tmp_path, model).open() as harness:
        await interrupted(harness)
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(replied(Message(role=Role.ASSISTANT, parts=(Text(text="Here."),))))
        await harness.store.inbox.accept(harness.inbound("", answers="nothing that was asked"), harness.session, "cli")
        harness.hermes.scheduler.enqueue(harness.session)
        ended = await harness.ended()

        assert (ended.text, model.requests) == ("Here.", [])


async def test_a_summary_that_fails_is_not_what_the_model_is_asked_when_the_run_goes_on(tmp_path):
    def script(heard):
        if not model.requests[-1].use_tools:
            return Status(500, "broken")
        return Call("look") if len(model.requests) < 3 else Say("All done.")

    model = ScriptedModel(script)
    async with Harness(tmp_path, model, (tool("look"),), limits=lambda: Limits(turns=1)).open() as harness:
        ended = await harness.say("Go")
        assert ended.outcome is Outcome.LIMIT
        assert "(No summary: broken)" in ended.text

        again = await harness.say("", resumes=True)
        assert again.text == "All done."
        assert f"user: {SUM_UP}" not in await harness.transcript()


async def test_a_summary_without_words_leaves_the_reason(tmp_path):
    def script(heard):
        return Call("look") if model.requests[-1].use_tools else Answer(pieces=(Call("look"),))

    model = ScriptedModel(script)
    async with Harness(tmp_path, model, (tool("look"),), limits=lambda: Limits(turns=1)).open() as harness:
        ended = await harness.say("Go")

        assert ended.text == "Stopped: the turn limit (1, `agent.max_turns`) was reached."


async def test_a_stop_says_of_each_call_whether_it_had_begun(tmp_path):
    calls = [Call("change", {"n": 1}), Call("change", {"n": 2})]
    change = tool("change", effect=Effect.WRITES, seconds=60)
    async with Harness(tmp_path, ScriptedModel([calls]), (change,)).open() as harness:
        await harness.tell("Go")
        await harness.until(ToolStarted)
        await harness.hermes.stop(harness.session)

        view = await harness.hermes.view(harness.session)
        said = [part.text for message in view.messages for part in message.parts if isinstance(part, ToolResult)]
        assert said == [
            "Interrupted: the run ended before this call had a result; what it did is unknown.",
            "Not run: the run ended before this call.",
        ]


async def test_a_run_that_cannot_begin_tells_why_and_keeps_the_words(tmp_path):
    class Houseless(Harness):
        async def agent(self, record, journal):
            raise NoModel("There is no model to ask.")

    async with Houseless(tmp_path, ScriptedModel([])).open() as harness:
        ended = await harness.say("One", message_id="1")
        again = await harness.say("Two")

        assert (ended.outcome, ended.text, ended.error) == (Outcome.FAILED, "There is no model to ask.", "NoModel")
        assert again.text == "There is no model to ask."
        assert await harness.transcript() == ["user: One", "user: Two"]
        mail = await harness.store.inbox.find("test", "1")
        assert (mail.state, mail.reason) == ("refused", "There is no model to ask.")


async def test_a_run_that_a_crash_left_open_and_that_cannot_begin_is_ended(tmp_path):
    class Houseless(Harness):
        async def agent(self, record, journal):
            raise NoModel("There is no model to ask.")

    async with Houseless(tmp_path, ScriptedModel([]), (tool("look"),)).open() as harness:
        await interrupted(harness, Call("look"))
        await harness.say("", resumes=True)

        assert (await harness.kinds()).count("run_started") == 1
        assert "Not run" in (await harness.transcript())[-1]


async def test_a_defect_becomes_an_apology_and_a_line_in_the_log(tmp_path, caplog):
    class Broken(Harness):
        async def agent(self, record, journal):
            raise ZeroDivisionError("by zero")

    async with Broken(tmp_path, ScriptedModel([])).open() as harness:
        ended = await harness.say("Go")

        assert ended.outcome is Outcome.FAILED
        assert "logs/hermes.log" in ended.text
        assert "ZeroDivisionError" in caplog.text


async def test_mail_that_came_before_a_crash_took_the_end_of_a_run_does_not_take_its_reply(tmp_path):
    async with Harness(tmp_path, ScriptedModel(lambda _: Say("And there."))).open() as harness:
        await interrupted(harness)
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(replied(Message(role=Role.ASSISTANT, parts=(Text(text="Here."),))))
        await harness.tell("And?")
        first = await harness.ended()
        second = await harness.ended((await harness.numbers("run_ended"))[0])

        assert (first.text, second.text) == ("Here.", "And there.")


async def test_the_turns_before_a_crash_count(tmp_path):
    model = ScriptedModel(lambda heard: Call("look") if model.requests[-1].use_tools else Say("So far."))
    async with Harness(tmp_path, model, (tool("look"),), limits=lambda: Limits(turns=2)).open() as harness:
        await interrupted(harness, Call("look"))
        await harness.say("", resumes=True)

        assert [request.use_tools for request in model.requests] == [True, False]


async def test_a_run_that_was_interrupted_says_so_and_goes_on_after_another_start(tmp_path):
    harness = Harness(tmp_path, ScriptedModel([Hang(), Hang()]))
    async with harness.open():
        await harness.tell("Go")
        await harness.until(MessageTaken)
    harness.model = ScriptedModel([Say("Here.")])
    async with harness.open():
        after = (await harness.log())[-1].number
        assert await harness.hermes.resume(harness.session)
        ended = await harness.ended(after)

        assert ended.text == "Here."
        assert [entry.event.level for entry in await harness.log() if isinstance(entry.event, Notice)] == ["info"]
        assert sum(isinstance(entry.event, RunEnded) for entry in await harness.log()) == 1


@pytest.mark.parametrize("turns", [0, 1])
async def test_no_call_is_made_that_the_turn_limit_does_not_allow(tmp_path, turns):
    model = ScriptedModel(lambda heard: Call("look") if model.requests[-1].use_tools else Say("So far."))
    async with Harness(tmp_path, model, (tool("look"),), limits=lambda: Limits(turns=turns)).open() as harness:
        ended = await harness.say("Go")

        assert ended.reason == "turn limit"
        assert sum(request.use_tools for request in model.requests) == turns


async def test_a_store_that_fails_during_the_summary_ends_the_run_without_it(tmp_path):
    class Failing(ScriptedModel):
        async def ask(self, request):
            if not request.use_tools:
                raise DiskFull("There is no room left.")
            async for piece in super().ask(request):
                yield piece

    harness = Harness(tmp_path, Failing(lambda heard: Call("look")), (tool("look"),), limits=lambda: Limits(turns=1))
    async with harness.open():
        with pytest.raises(DiskFull):
            await harness.say("Go")

        assert "run_ended" not in await harness.kinds()


class Counting:
    """A `Closing` that keeps what it was told of each end, when that is committed."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, int, int]] = []

    def changes(self, session, ended):
        counted = (ended.outcome.value, session.heard, session.rounds)

        async def change(_):
            self.ends.append(counted)

        return [change]


async def test_what_is_kept_of_a_run_is_committed_with_its_end(tmp_path):
    closing = Counting()
    steps = [Call("look"), Call("look"), Say("Done."), Say("Again.")]
    async with Harness(tmp_path, ScriptedModel(steps), (tool("look"),), closing=(closing,)).open() as harness:
        await harness.say("Look twice")
        await harness.say("And again?")

    assert closing.ends == [("answered", 1, 2), ("answered", 1, 0)]


@pytest.mark.parametrize("error", [TimeoutError(), OSError(errno.ETIMEDOUT, "Connection timed out")], ids=type)
@pytest.mark.parametrize("place", ["prompt", "model"])
async def test_a_machine_that_does_not_answer_is_not_the_runs_time_limit(tmp_path, caplog, place, error):
    class Stale(ScriptedModel):
        async def ask(self, request):
            if place == "model":
                raise error
            async for piece in super().ask(request):
                yield piece

    class Somewhere(Harness):
        async def agent(self, record, journal):
            made = await super().agent(record, journal)
            return replace(made, prompt=SessionPrompt(self.store, (), stale)) if place == "prompt" else made

    async def stale() -> Environment:
        raise error

    async with Somewhere(tmp_path, Stale([Say("Hello.")])).open() as harness:
        ended = await harness.say("Hi")

        assert (ended.outcome, ended.text) == (Outcome.FAILED, str(told_of(error)))
        assert "TimeoutError" in caplog.text
