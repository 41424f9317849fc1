"""Learning in a whole system: counted, reviewed beside the conversation, told in one line."""

from hermes_agent.core.events import Notice
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.learning.jobs import JobState
from tests.learning.harness import Script, asked, learning_place, looks, reviewed, rounds, skill


async def test_a_task_of_many_rounds_is_reviewed_and_its_lesson_is_live(tmp_path):
    script = Script(looks(3), clean=[skill("make-tea", "Boil the water, then pour it."), Say("Kept.")])
    async with learning_place(tmp_path, script) as here:
        await here.say("Make tea, please")
        jobs = await reviewed(here)
        card = await here.runtime.skills.library.find("make-tea")
        notices = [entry.event.text for entry in await here.log() if isinstance(entry.event, Notice)]

    assert [(job.state, job.what, job.account.kept) for job in jobs] == [(JobState.DONE, "skills", 1)]
    assert card.description.startswith("How to do")
    assert notices == ["Learned: skill `make-tea`: create (undo: /learn undo 1)."]


async def test_the_first_request_of_a_review_begins_with_the_whole_last_request_of_the_conversation(tmp_path):
    script = Script(rounds("echo one", "echo two", "echo three"))
    async with learning_place(tmp_path, script) as here:
        await here.say("Say three numbers")
        (job,) = await reviewed(here)
        parent, first = asked(here, review=False)[-1], asked(here, review=True)[0]

    before, after = parent.body, first.body
    assert [before[key] for key in ("model", "tools")] == [after[key] for key in ("model", "tools")]
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert first.usage.cached >= 0.95 * parent.usage.input
    assert job.state is JobState.DONE
