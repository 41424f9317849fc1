"""Negative lessons end: by their check, their last day, their number."""

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from hermes_agent.app.learning.work import Probes
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.events import Notice
from hermes_agent.core.messages import Role
from hermes_agent.learning.constraints import lines_of, sort_of
from hermes_agent.learning.probing import HOUR, Probing
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.walls import Walls
from hermes_agent.store.learning.jobs import Account, Job, JobKind
from hermes_agent.store.learning.lessons import LessonState, Sort
from hermes_agent.store.learning.proposals import Why
from hermes_agent.store.versions import Kind
from hermes_agent.testing.clock import FakeClock
from tests.app.place import PLACE, Place
from tests.learning.harness import SOON, Script, learning_place, looks, note, reviewed, skill

ALWAYS = SOON.replace("nudge_interval: 2", "nudge_interval: 1") + "learning:\n  probe_hours: 0\n"


@pytest.fixture
def jailed() -> None:
    try:
        jail_of("any", Walls())
    except CannotJail as reason:
        pytest.skip(str(reason))


def mark(check: str, days: int = 30) -> str:
    until = (datetime.now(UTC) + timedelta(days=days)).date()
    return f"[in: this machine; check: {check}; until: {until}]"


@pytest.mark.usefixtures("jailed")
async def test_a_lesson_of_a_command_that_is_there_again_is_retired_told_and_undone(tmp_path):
    tool = tmp_path / "work/frobnicate"
    lesson = f"frobnicate is not installed: count by hand. {mark('test -x ./frobnicate')}"
    script = Script(lambda heard: Say("Noted."), clean=[note(lesson), Say("Kept.")])
    async with learning_place(tmp_path, script, more=ALWAYS) as here:
        store, notes = here.runtime.store, tmp_path / "home/memories/MEMORY.md"
        await here.say("frobnicate gives: command not found")
        await reviewed(here)
        assert lesson in notes.read_text()
        script.clean = [Say("Nothing to keep.")]

        await here.say("Still not there")
        await reviewed(here)
        (kept,) = await store.lessons.live()
        assert kept.line == lesson
        assert (kept.sort, kept.state) == (Sort.AVOID, LessonState.LIVE)
        assert lesson in notes.read_text()

        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        await here.say("I have installed it")
        await reviewed(here)
        ended = await store.lessons.get(kept.id)
        told = [entry.event.text for entry in await here.log() if isinstance(entry.event, Notice)][-1]
        shown = await here.text(f"/learn show {ended.retired}")

        assert await store.lessons.live() == []
        assert ended.state is LessonState.PASSED
        assert "frobnicate" not in (notes.read_text() if notes.exists() else "")
        assert told.startswith('Retired: memory `MEMORY.md`, "frobnicate is not installed: count by hand.": its check')
        assert f"/learn undo {ended.retired}" in told
        assert "retired: its check passes now" in shown
        await here.text(f"/learn undo {ended.retired}")
        assert lesson in notes.read_text()
        await here.say("Go on")
        await reviewed(here)
        assert lesson in notes.read_text()


@pytest.mark.usefixtures("jailed")
async def test_a_line_of_a_skill_goes_alone_and_what_a_person_pinned_is_proposed(tmp_path):
    bad = f"- jq does not work here: use python. {mark('true')}"
    made = skill("read-json", "Step one.", bad, "Step two.")
    script = Script(looks(3), clean=[[made, skill("pinned-one", "First.", bad)], Say("Kept.")])
    async with learning_place(tmp_path, script, more=ALWAYS) as here:
        await here.say("Look around")
        await reviewed(here)
        await here.runtime.skills.library.state.change(lambda state: _pinned(state, "pinned-one"))
        script.clean = [Say("Nothing to keep.")]
        await here.say("Again, please")
        job = next(each for each in await reviewed(here) if each.kind is JobKind.PROBE)
        (proposal,) = await here.runtime.store.proposals.waiting()

        text = (tmp_path / "home/skills/read-json/SKILL.md").read_text()
        assert "jq" not in text
        assert "Step one.\nStep two." in text
        assert bad in (tmp_path / "home/skills/pinned-one/SKILL.md").read_text()
        assert (proposal.why, job.account.kept, job.account.waiting) == (Why.PROTECTED, 1, 1)
        assert f"{proposal.name} would retire skill `pinned-one`" in job.account.note
        await here.text(f"/learn approve {proposal.name}")
        assert "jq" not in (tmp_path / "home/skills/pinned-one/SKILL.md").read_text()


def _pinned(state, name: str):
    return msgspec.structs.replace(state, pinned=frozenset({*state.pinned, name}))


@pytest.mark.usefixtures("jailed")
async def test_what_the_agent_noted_by_itself_ends_as_well(tmp_path):
    talk = [
        note("sh is not installed here."),
        note("The browser never works here; it is broken."),
        Say("Noted."),
        *looks(0) * 3,
    ]
    async with learning_place(tmp_path, Script(talk), more=ALWAYS) as here:
        store, notes = here.runtime.store, tmp_path / "home/memories/MEMORY.md"
        await here.say("sh and the browser give: command not found")
        await reviewed(here)
        assert "sh is not installed" not in notes.read_text()
        (left,) = await store.lessons.live()
        assert (left.sort, left.probe) == (Sort.AVOID, "")

        account = await probed(here, later=91 * 24 * HOUR)
        assert account.kept == 1
        assert await store.lessons.live() == []


async def test_an_undeclared_lesson_of_failure_comes_back_once_and_is_refused(tmp_path):
    claim = note("jq does not work here.")
    script = Script(looks(3), clean=[claim, claim, Say("Done.")])
    async with learning_place(tmp_path, script, more=ALWAYS) as here:
        await here.say("Look around")
        (job,) = [each for each in await reviewed(here) if each.kind is JobKind.REVIEW]
        assert (job.account.kept, job.account.refused) == (0, 1)
        answers = [part.text for m in script.reviews[-1].messages[-4:] for part in m.parts if hasattr(part, "call_id")]
        assert "Once more is allowed" in answers[0]
        assert "[in: WHERE IT HOLDS; check: COMMAND; until: YYYY-MM-DD]" in answers[0]
        assert "came back once already" in answers[1]
        assert not (tmp_path / "home/memories/MEMORY.md").exists()


async def test_a_lesson_expires_is_crowded_out_or_gone(tmp_path):
    lines = [f"Tool{number} does not work. {mark('false', days=number)}" for number in (1, 20, 21, 22)]
    script = Script(lambda heard: Say("Noted."), clean=[[note(line) for line in lines], Say("Kept.")])
    more = ALWAYS + "  max_constraints: 2\n"
    async with learning_place(tmp_path, script, more=more) as here:
        store, notes = here.runtime.store, tmp_path / "home/memories/MEMORY.md"
        await here.say("Four things do not work")
        await reviewed(here)
        script.clean = [Say("Nothing to keep.")]
        await here.say("Go on")
        await reviewed(here)
        assert [each.line for each in await store.lessons.live()] == lines[:1:-1]
        assert notes.read_text().count("does not work") == 2

        notes.write_text(lines[3] + "\n")
        await here.say("Go on")
        await reviewed(here)
        (left,) = await store.lessons.live()
        assert left.line == lines[3]

        account = await probed(here, later=30 * 24 * HOUR)
        assert await store.lessons.live() == []
        assert not notes.exists() or "does not work" not in notes.read_text()
        ended = [await store.lessons.get(number) for number in range(1, 5)]
        states = [each.state for each in ended]
        assert states == [LessonState.CROWDED, LessonState.CROWDED, LessonState.GONE, LessonState.EXPIRED]
        assert "it expired" in account.note
        assert (account.kept, account.waiting) == (1, 0)


@pytest.mark.usefixtures("jailed")
async def test_what_of_somebody_else_ended_is_told_without_its_words(tmp_path):
    talk = Script(
        [note("sh is not installed here.", "user"), note("ls is not installed here."), Say("Noted."), *looks(0)]
    )
    async with learning_place(tmp_path, talk, more=SOON) as here:
        store = here.runtime.store
        await here.say("sh and ls give: command not found")
        await reviewed(here)
        later = await probed(here, later=25 * HOUR, principal="telegram:7")
        assert later.note == "Retired: 2 lessons (`/learn log`)."
        assert await store.lessons.live() == []
        again = await here.text("/learn log")
        assert again.count("remove by background") == 2


async def probed(here: Place, later: float, principal: str = "") -> Account:
    """A job that looks at what is due after so many seconds."""
    store, learner = here.runtime.store, here.runtime.learner
    job = Job(
        id="probe",
        kind=JobKind.PROBE,
        session=here.record.id,
        principal=principal or here.record.principal,
        what="",
        first=0,
        last=0,
        created=1,
    )
    await store.write(lambda tx: store.learning.queue(tx, job))
    claim = await store.learning.claim([JobKind.PROBE])
    assert claim is not None
    probing = Probing(
        store=store,
        clock=FakeClock(here.runtime.clock.now() + later),
        settings=here.runtime.loaded.value.learning,
        hands_of=learner.work.writers,
        proposing=learner.work.proposing,
        passes=Probes(place=here.runtime.skills.place, tools=tuple, ids=RandomIds()),
    )
    return await probing(claim)


@pytest.mark.usefixtures("jailed")
async def test_who_wants_to_be_asked_is_asked_about_the_end_too(tmp_path):
    script = Script(lambda heard: Say("Noted."), clean=[note(f"jq is not installed. {mark('true')}"), Say("Kept.")])
    async with learning_place(tmp_path, script, more=ALWAYS + "  mode: propose\n") as here:
        await here.say("jq is missing")
        await reviewed(here)
        await here.text("/learn approve p1")
        script.clean = [Say("Nothing to keep.")]
        await here.say("Go on")
        await reviewed(here)
        (proposal,) = await here.runtime.store.proposals.waiting()
        assert (proposal.why, proposal.action) == (Why.ASKED, "remove")


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_corrections_without_end_leave_a_bounded_number_of_constraints(tmp_path, full):
    chance, most = random.Random(4), 5
    things = [
        f"{verb}-{number}" for verb in ("tabs", "jq", "curl", "emoji", "sed") for number in range(40 if full else 6)
    ]

    def lesson(heard: Heard) -> object:
        asked = [m.text for m in heard.messages if m.role is Role.USER and m.text.startswith("No, not")][-1]
        thing = asked.split("`")[1]
        forms = [
            note(f"Never use {thing}.", "user"),
            note(f"Avoid {thing} in replies."),
            note(f"{thing} does not work here."),
            note(f"{thing} does not work here. {mark('false', chance.randint(1, 80))}"),
            skill(f"without-{thing}", f"- Do not use {thing}."),
            skill(f"around-{thing}", f"- {thing} is not installed. {mark('false', chance.randint(1, 80))}"),
        ]
        return chance.choice(forms)

    script = Script(lambda heard: Say("Understood."), clean=lambda heard: _first(heard, lesson))
    more = SOON.replace("nudge_interval: 2", "nudge_interval: 1").replace("nudge_interval: 3", "nudge_interval: 1")
    async with learning_place(tmp_path, script, more=f"{more}learning:\n  max_constraints: {most}\n") as here:
        store = here.runtime.store
        for thing in things:
            here.record = await here.runtime.hermes.open_session(
                PLACE, here.runtime.owner, workspace=here.record.workspace
            )
            for what in ("memory", "skills"):  # Empty reviews in a row would make room.
                await store.write(lambda tx, what=what: store.pace.note(tx, here.record.principal, what, empty=False))
            await here.say(f"No, not `{thing}`, please")
            await reviewed(here)
        await here.say("Thank you")
        await reviewed(here)
        live = await store.lessons.live()
        jobs = await store.learning.list(JobKind.REVIEW, limit=1000)

    files = [*(tmp_path / "home/skills").glob("*/SKILL.md"), *(tmp_path / "home/memories").glob("*.md")]
    standing = [line for path in files for line in path.read_text().splitlines() if sort_of_text(line)]
    assert len(jobs) >= len(things)
    assert sum(each.account.kept for each in jobs) > 2 * most
    assert len(live) <= 2 * most
    assert len(standing) <= 2 * most


def _first(heard: Heard, lesson):
    done = any(m.role is Role.ASSISTANT and m.tool_calls for m in heard.messages)
    return Say("That is all.") if done else lesson(heard)


def sort_of_text(line: str) -> Sort | None:
    return next((sort_of(each) for each in lines_of(Kind.SKILL, line)), None)
