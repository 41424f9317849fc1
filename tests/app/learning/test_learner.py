"""Learning in a whole system: counted, reviewed beside the conversation, told in one line."""

from hermes_agent.app.learning.parts import HomeWriters, within
from hermes_agent.core.events import Notice
from hermes_agent.core.messages import ToolCall
from hermes_agent.core.spending import Limit, Rules, Scope
from hermes_agent.learning.drafts import draft_of
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.learning.jobs import JobState
from tests.learning.harness import Script, asked, learning_place, looks, reviewed, rounds, skill
from tests.skills.shelf import put


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


async def test_hands_find_the_file_that_a_draft_would_change(tmp_path):
    folder = put(tmp_path / "home/skills", "tea", body="Boil.")
    (folder / "references").mkdir()
    (folder / "references/a.md").write_text("more")
    async with learning_place(tmp_path, Script([Say("Hi.")])) as here:
        hands = here.runtime.learner.parts.writers(here.record)
        assert isinstance(hands, HomeWriters)
        assert hands.is_owner

        async def content(tool: str, /, **arguments: str) -> bytes | None:
            found = draft_of(ToolCall(id="c", name=tool, arguments=arguments), "", "k")
            assert found is not None
            return await hands.content(found)

        assert b"Boil." in await content("skill_manage", action="edit", name="tea")
        assert await content("skill_manage", action="write_file", name="tea", file="references/a.md") == b"more"
        assert await content("skill_manage", action="create", name="new") is None
        assert await content("skill_manage", action="create") is None
        assert await content("memory", action="add", target="user", content="x") is None


def test_the_lower_of_two_limits_holds_for_a_review():
    own = Limit(scope=Scope.RUN, tokens=100)
    day = Limit(scope=Scope.DAY, money=5)
    assert within(Rules(), Limit(scope=Scope.RUN)) == Rules()
    assert within(Rules(limits=(day,)), own).limits == (day, own)
    both = within(Rules(limits=(Limit(scope=Scope.RUN, money=3, tokens=50),)), own)
    assert both.limits == (Limit(scope=Scope.RUN, money=3, tokens=50),)
