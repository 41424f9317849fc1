"""Questions of a call: asked once, whatever interrupts it, and answered field by field where they have fields."""

from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Asked, Notice
from hermes_agent.core.forms import Field
from hermes_agent.core.tool import Question
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, Piece, interrupted


def done() -> ScriptedModel:
    return ScriptedModel([Say("Unused."), Say("Done.")])


async def test_a_question_that_was_asked_before_a_crash_is_not_asked_again(tmp_path):
    async def ask(_, context):
        return "You said " + await context.ask(Question(text="Which?"))

    async with Harness(tmp_path, done(), (Piece("ask", ask, Effect.ASKS),)).open() as harness:
        (call,) = await interrupted(harness, Call("ask"))
        async with harness.hermes.holding(harness.session) as journal:
            question = Asked(question=f"{call.id}.clarify", text="Which?", choices=(), purpose="clarify")
            await journal.commit(question)
        await harness.tell("", resumes=True)
        await harness.until(Notice)
        await harness.tell("this one", answers=question.question)
        await harness.ended()

        assert (await harness.kinds()).count("asked") == 1
        assert "tool: You said this one" in await harness.transcript()


async def test_an_open_question_stays_the_same_in_other_circumstances(tmp_path):
    async def ask(_, context):
        return "You said " + await context.ask(Question(text="Sure?", about="it", circumstances="now"))

    async with Harness(tmp_path, done(), (Piece("ask", ask, Effect.ASKS),)).open() as harness:
        (call,) = await interrupted(harness, Call("ask"))
        async with harness.hermes.holding(harness.session) as journal:
            before = Asked(question=f"{call.id}.clarify.it.before", text="Sure?", choices=(), purpose="clarify")
            await journal.commit(before)
        await harness.tell("", resumes=True)
        await harness.until(Notice)
        await harness.tell("this one", answers=before.question)
        await harness.ended()

        assert (await harness.kinds()).count("asked") == 1
        assert "tool: You said this one" in await harness.transcript()


async def test_a_question_that_nobody_asked_before_is_of_the_circumstances_of_now(tmp_path):
    async def ask(_, context):
        return "You said " + await context.ask(Question(text="Sure?", about="it", circumstances="now"))

    async with Harness(tmp_path, done(), (Piece("ask", ask, Effect.ASKS),)).open() as harness:
        (call,) = await interrupted(harness, Call("ask"))
        await harness.tell("", resumes=True)
        asked = (await harness.until(Asked)).event
        assert asked.question == f"{call.id}.clarify.it.now"
        await harness.tell("yes", answers=asked.question)
        await harness.ended()

        assert "tool: You said yes" in await harness.transcript()


async def test_a_form_is_asked_field_by_field_and_answered_as_an_object(tmp_path):
    fields = (Field(name="name", required=True), Field(name="age", type="integer"))

    async def ask(_, context):
        return await context.ask(Question(text="Who?", fields=fields))

    async with Harness(tmp_path, done(), (Piece("ask", ask, Effect.ASKS),)).open() as harness:
        (call,) = await interrupted(harness, Call("ask"))
        await harness.tell("", resumes=True)
        first = await harness.until(Asked)
        await harness.tell("Ann", answers=f"{call.id}.clarify.0")
        await harness.until(Asked, first.number)
        await harness.tell('{"age": 7}', answers=f"{call.id}.clarify.1")
        await harness.ended()

        assert 'tool: {"name": "Ann", "age": 7}' in await harness.transcript()


async def test_an_answer_that_was_given_before_a_crash_is_used(tmp_path):
    async def ask(_, context):
        return "You said " + await context.ask(Question(text="Which?"))

    async with Harness(tmp_path, done(), (Piece("ask", ask, Effect.ASKS),)).open() as harness:
        (call,) = await interrupted(harness, Call("ask"))
        answer = harness.inbound("that one", answers=f"{call.id}.clarify")
        await harness.store.inbox.accept(answer, harness.session, "cli")
        harness.hermes.scheduler.enqueue(harness.session)
        await harness.ended()

        assert "tool: You said that one" in await harness.transcript()
