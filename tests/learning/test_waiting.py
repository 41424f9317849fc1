"""What waits: applied by the owner on top of what came since, ended when another conversation comes to the same, taken
back with its own."""

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.learning import learned, proposing  # noqa: F401 - what is tested here
from hermes_agent.learning.proposing import DAY, title_of, words_of
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.learning.jobs import JobKind, JobState
from hermes_agent.store.learning.proposals import Proposal, ProposalState, Why
from hermes_agent.store.versions import Author, By, Kind
from tests.app.place import Place
from tests.learning.harness import SOON, Script, learning_place, looks, note, reviewed, rounds, skill
from tests.skills.shelf import put

WISH = "Prefers short plain answers always"
PROPOSE = SOON + "learning:\n  mode: propose\n"
OWNER = By(author=Author.OWNER)


async def waits(here: Place) -> list[Proposal]:
    return await here.runtime.store.proposals.waiting()


async def yes(here: Place, proposal: Proposal, state: ProposalState = ProposalState.APPROVED):
    return await here.runtime.learner.work.proposing.apply(proposal, state)


def edited(name: str, body: str) -> Call:
    content = f"---\nname: {name}\ndescription: How to do it.\n---\n\n{body}"
    return Call("skill_manage", {"action": "edit", "name": name, "content": content})


async def test_a_yes_is_put_on_top_of_what_was_changed_meanwhile(tmp_path):
    lines = [f"Line {number} of it." for number in range(12)]
    put(tmp_path / "home/skills", "tea", "How to do it.", "\n".join(lines))
    new = "\n".join(["Line 0, better.", *lines[1:]]) + "\n"
    async with learning_place(tmp_path, Script(looks(3), clean=[edited("tea", new), Say("Kept.")])) as here:
        await here.say("Look around")
        await reviewed(here)
        (proposal,) = await waits(here)
        file = tmp_path / "home/skills/tea/SKILL.md"
        file.write_text(file.read_text().replace("Line 11 of it.", "Line 11, by hand."))
        await yes(here, proposal)

    assert proposal.why is Why.PROTECTED
    assert "Line 0, better." in file.read_text()
    assert "Line 11, by hand." in file.read_text()


async def test_what_does_not_fit_any_more_waits_on_and_says_so(tmp_path):
    put(tmp_path / "home/skills", "tea", "How to do it.", "Only line.")
    async with learning_place(tmp_path, Script(looks(3), clean=[edited("tea", "Better.\n"), Say("Kept.")])) as here:
        await here.say("Look around")
        await reviewed(here)
        (proposal,) = await waits(here)
        file = tmp_path / "home/skills/tea/SKILL.md"
        file.write_text(file.read_text().replace("Only line.", "Mine."))

        with pytest.raises(HermesError, match="changed since"):
            await yes(here, proposal)
        assert [each.id for each in await waits(here)] == [proposal.id]
    assert "Mine." in file.read_text()


async def test_a_yes_counts_once_also_when_the_program_died_in_it(tmp_path):
    async with learning_place(
        tmp_path, Script(looks(3), clean=[note("It rains."), Say("Kept.")]), more=PROPOSE
    ) as here:
        await here.say("Look around")
        await reviewed(here)
        (proposal,) = await waits(here)
        store = here.runtime.store
        await store.proposals.intend(proposal.id)
        left = await store.proposals.get(proposal.id)

        version = await yes(here, left)
        with pytest.raises(HermesError, match="is no longer open"):
            await yes(here, await store.proposals.get(proposal.id))

    assert (left.state, version.change.note) == (ProposalState.INTENDED, "p1: the owner said yes")
    assert (tmp_path / "home/memories/MEMORY.md").read_text() == "It rains.\n"


async def test_a_proposal_is_shown_with_its_reason_and_words(tmp_path):
    script = Script(looks(3), clean=[skill("tea", "Boil it."), note("It rains."), Say("Kept.")])
    async with learning_place(tmp_path, script, more=PROPOSE) as here:
        await here.say("Look around")
        await reviewed(here)
        first, second = await waits(here)
        await here.runtime.store.sessions.delete(here.record.id)
        await yes(here, second)

    assert title_of(first) == "p1  skill tea: create (needs your approval)"
    assert "Boil it." in words_of(first)
    assert words_of(second) == "content: It rains."


async def test_a_conversation_that_comes_to_the_same_by_itself_releases_an_item_and_one_that_names_it_does_not(
    tmp_path,
):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/page.txt").write_text("Hint: run `make all now`, it is the way to build this.\n")
    lesson = skill("build", "To build, run `make all now`.")
    script = Script(rounds("cat page.txt", "echo two", "echo three"), raw=[lesson, Say("Kept.")])
    async with learning_place(tmp_path, script) as here:
        await here.say("Read the page")
        await reviewed(here)
        (proposal,) = await waits(here)
        script.talk = looks(12)
        for words in ("Nothing of the kind", "I build with make all now", "Please do: make all now"):
            await here.type("/new")
            await here.say(words)
            await reviewed(here)
        named = await here.runtime.store.proposals.get(proposal.id)
        script.clean = [lesson, Say("Kept.")]
        await here.type("/new")
        await here.say("To build, run make all now")
        await reviewed(here)
        found = await here.runtime.store.proposals.get(proposal.id)
        card = await here.runtime.skills.library.find("build")

    assert proposal.why is Why.OUTSIDE
    assert named.state is ProposalState.WAITING
    assert (found.state, card.name) == (ProposalState.RELEASED, "build")
    assert found.version


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("It rains in May. Take a coat.", ProposalState.RELEASED),
        ("it rains in MAY; take a coat", ProposalState.RELEASED),
        ("It rains in May.", ProposalState.WAITING),
        ("It rains in May. Take a coat. Then go out.", ProposalState.WAITING),
    ],
)
async def test_the_same_is_every_sentence_and_no_more(tmp_path, words: str, state: ProposalState):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/page.txt").write_text("It rains in May, so take a coat.\n")
    lesson = note("It rains in May. Take a coat.")
    script = Script(rounds("cat page.txt", "echo two", "echo three"), raw=[lesson, Say("Kept.")])
    async with learning_place(tmp_path, script) as here:
        await here.say("Read the page")
        await reviewed(here)
        (proposal,) = await waits(here)
        script.talk, script.clean = looks(12), [note(words), Say("Kept.")]
        for said in ("Look around", f"Keep this: {words}"):
            await here.type("/new")
            await here.say(said)
        await reviewed(here)
        found = await here.runtime.store.proposals.get(proposal.id)

    assert words in (tmp_path / "home/memories/MEMORY.md").read_text()
    assert found.state is state


async def test_what_waited_too_long_is_gone(tmp_path):
    script = Script(looks(3), clean=[note("It rains."), Say("Kept.")])
    async with learning_place(tmp_path, script, more=PROPOSE) as here:
        await here.say("Look around")
        await reviewed(here)
        (proposal,) = await waits(here)
        await here.runtime.store.proposals.expire(proposal.at + 31 * DAY)
        assert await waits(here) == []


async def test_deleting_a_conversation_takes_back_what_only_it_supports(tmp_path):
    lessons = [
        skill("tea", "Boil it."),
        skill("used", "Pour it."),
        skill("mine", "Stir."),
        note("It rains."),
        Say("Kept."),
    ]
    script = Script(looks(3), clean=lessons)
    async with learning_place(tmp_path, script) as here:
        runtime, taught = here.runtime, here.record.id
        await here.say("Look around")
        await reviewed(here)
        writer = runtime.skills.writer(runtime.store)
        await writer.patch("mine", "Stir.", "Stir well.", OWNER)
        script.talk = [Call("skill_view", {"name": "used"}), Say("It is done.")]
        await here.type("/new")
        await here.say("Use it")

        await runtime.store.sessions.delete(taught)
        jobs = await reviewed(here)
        names = {card.name for card in await runtime.skills.library.all()}
        history = await runtime.store.versions.list(Kind.SKILL, "tea/SKILL.md")

    assert (jobs[0].kind, jobs[0].state) == (JobKind.RETRACT, JobState.DONE)
    assert names & {"tea", "used", "mine"} == {"used", "mine"}
    assert not (tmp_path / "home/memories/MEMORY.md").exists()
    assert history[0].change.note == "the conversation that it came from was deleted"


async def test_a_conversation_s_proposals_go_with_it(tmp_path):
    script = Script(looks(3), clean=[note("It rains."), Say("Kept.")])
    async with learning_place(tmp_path, script, more=PROPOSE) as here:
        await here.say("Look around")
        await reviewed(here)
        await here.runtime.store.sessions.delete(here.record.id)
        await reviewed(here)
        assert await waits(here) == []
        proposal = await here.runtime.store.proposals.get(1)
        assert proposal is not None
        assert proposal.state is ProposalState.RETRACTED


async def test_an_undo_is_to_the_byte_for_skills_and_notes(tmp_path):
    script = Script(looks(3), clean=[skill("tea", "Boil it."), note("It rains."), Say("Kept.")])
    async with learning_place(tmp_path, script) as here:
        runtime = here.runtime
        undo = runtime.learner.work.undoing
        await here.say("Look around")
        await reviewed(here)
        file = tmp_path / "home/skills/tea/SKILL.md"
        before = file.read_bytes()
        writer = runtime.skills.writer(runtime.store)
        patched = await writer.patch("tea", "Boil it.", "Pour it.", By(author=Author.BACKGROUND))

        await undo.undo(await undo.find(patched.version), Author.OWNER, "cli:me")
        assert file.read_bytes() == before
        newest = await undo.find(None)
        await undo.undo(newest, Author.OWNER, "cli:me")
        assert newest.change.kind is Kind.MEMORY
        assert (tmp_path / "home/memories/MEMORY.md").exists() is False
        with pytest.raises(HermesError, match="undone already"):
            await undo.undo(newest, Author.OWNER, "cli:me")
        await undo.undo(await undo.find(None), Author.OWNER, "cli:me")
        assert not file.exists()
        for number, words in ((99, "no version 99"), (None, "nothing to undo")):
            with pytest.raises(HermesError, match=words):
                await undo.find(number)
