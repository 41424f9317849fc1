"""A session without a person is narrowed by its mandate, wherever its runs begin, and does nothing without one."""

from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.work import NOTHING, granted_by, toolsets_by
from hermes_agent.core.effects import Capability
from hermes_agent.core.events import Outcome
from hermes_agent.core.inbound import Conversation, Inbound
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.core.messages import Origin, Text
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.runs.front import Assignment
from tests.app.place import Place, place

WHERE = Conversation(platform=Work.CHILD, chat_kind="folder", chat="s", thread="1")


async def given(here: Place, mandate: Mandate, *, job: str = "") -> None:
    """Give a session its goal; from then on `here` watches that session."""
    said = Inbound(
        source="delegate",
        source_id=here.runtime.ids.short(),
        principal=here.runtime.owner,
        conversation=WHERE,
        parts=(Text(text="Do it.", origin=Origin.OWNER),),
        received=here.runtime.clock.now(),
    )
    work = Assignment(mandate=mandate, job=job)
    begun = await here.runtime.hermes.start_session(said, workspace=here.record.workspace, work=work)
    here.record = await here.runtime.hermes.record(begun.session)


async def test_a_mandate_narrows_tools_prompt_and_effort_of_a_run(tmp_path: Path):
    async with place(tmp_path, [Call("terminal", {"command": "id"}), Say("Done.")]) as here:
        await given(here, Mandate(kind=Work.CHILD, toolsets=("files",), role="You work for another session."))
        ended = await here.ended(0)

        body = here.server.exchanges[0].body
        answer = [message for message in here.server.exchanges[1].body["messages"] if message["role"] == "tool"]
        names = {tool["function"]["name"] for tool in body["tools"]}

    assert ended.outcome is Outcome.ANSWERED
    assert "read_file" in names and not names & {"terminal", "memory", "skill_view", "todo", "clarify"}
    assert "You work for another session." in body["messages"][0]["content"]
    assert "There is no tool `terminal`" in answer[0]["content"]


async def test_a_denied_capability_is_refused_at_the_call(tmp_path: Path):
    calls = [Call("terminal", {"command": "touch made"}), Say("Done.")]
    async with place(tmp_path, calls) as here:
        await given(here, Mandate(kind=Work.CHILD, denied=(Capability.EXEC,)))
        await here.ended(0)

        (answer,) = [each for each in here.server.exchanges[1].body["messages"] if each["role"] == "tool"]

    assert "exec" in answer["content"]
    assert not (tmp_path / "work" / "made").exists()


async def test_turns_and_the_wall_clock_end_its_run(tmp_path: Path):
    async with place(tmp_path, lambda _: Call("todo", {"action": "list"})) as here:
        await given(here, Mandate(kind=Work.CHILD, turns=2))
        at_turns = await here.ended(0)
        await given(here, Mandate(kind=Work.CHILD, until=here.runtime.clock.now() - 1))
        too_late = await here.ended(0)

    assert (at_turns.outcome, at_turns.reason) == (Outcome.LIMIT, "turn limit")
    assert (too_late.outcome, too_late.reason) == (Outcome.LIMIT, "time limit")


async def test_the_sessions_of_a_job_share_its_limit(tmp_path: Path):
    async with place(tmp_path, lambda _: Say("Done.")) as here:
        mandate = Mandate(kind=Work.CHILD, job_tokens=12_000)
        ends = []
        for _ in range(12):
            await given(here, mandate, job="j")
            ends.append(await here.ended(0))

    assert ends[0].outcome is Outcome.ANSWERED
    assert (ends[-1].outcome, ends[-1].reason) == (Outcome.LIMIT, "token limit")


async def test_nobody_answers_and_nothing_is_learned_in_it(tmp_path: Path):
    calls = [Call("clarify", {"question": "Which?"}), Say("Done.")]
    more = "skills:\n  creation_nudge_interval: 1\nmemory:\n  nudge_interval: 1\n"
    async with place(tmp_path, calls, Options(reviews=True), more=more) as here:
        await given(here, Mandate(kind=Work.CHILD))
        ended = await here.ended(0)
        jobs = await here.runtime.store.learning.list()
        (answer,) = [each for each in here.server.exchanges[1].body["messages"] if each["role"] == "tool"]

    assert ended.outcome is Outcome.ANSWERED
    assert "No one is here to answer" in answer["content"]
    assert jobs == []


async def test_a_session_whose_mandate_is_missing_does_nothing(tmp_path: Path):
    async with place(tmp_path, [Say("Done.")]) as here:
        here.record = await here.runtime.hermes.open_session(WHERE, here.runtime.owner, workspace=str(tmp_path))
        ended = await here.say("Do it.")

        assert ended.outcome is Outcome.FAILED
        assert "Nothing says what session" in ended.text
        assert here.server.exchanges == []


async def test_a_goal_that_is_given_again_leads_to_the_session_that_has_it(tmp_path: Path):
    async with place(tmp_path, [Say("Done.")]) as here:
        said = here.inbound("Do it.", message_id="once")
        work, beside = [], []

        async def note(_tx: object, session: str) -> None:
            beside.append(session)

        for _ in range(2):
            assignment = Assignment(mandate=Mandate(kind=Work.CHILD), beside=note)
            work.append(await here.runtime.hermes.start_session(said, workspace=str(tmp_path), work=assignment))

        assert work[0].session == work[1].session == beside[0]
        assert (len(beside), work[1].inbox) == (1, None)


@pytest.mark.parametrize(
    ("given_by", "narrowed", "left"),
    [(None, (), ()), (("files", "web"), (), ("files", "web")), (("files",), ("web",), NOTHING), ((), (), NOTHING)],
)
def test_a_mandate_never_widens_the_toolsets(given_by, narrowed, left):
    assert toolsets_by(Mandate(kind=Work.CRON, toolsets=given_by), narrowed) == left


def test_denied_capabilities_are_taken_from_what_is_granted():
    mandate = Mandate(kind=Work.CRON, denied=(Capability.NET,))

    assert granted_by(mandate, ["net", "exec"]) == ["exec"]
    assert Capability.NET not in (granted_by(mandate, None) or ())
    assert granted_by(None, None) is None
"""What work adds to runs: nothing to an ordinary session, and the end of what belongs to one that has agents."""
import asyncio
import subprocess
import sys
from hermes_agent.agent.session import Session as View
from hermes_agent.app.work import ParentEnd, awaits_reports, granted_by, resume_agents, toolsets_by, work_closings
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.host.late import Needs
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Piece, Say
from hermes_agent.store.sessions import Session
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import Place, another, counting, place, settle_home, spoken
ENDED = RunEnded(outcome=Outcome.ANSWERED, text="Hi", turns=1)
def session(surface: str) -> Session:
    return Session(id="s", principal="cli:me", conversation="cli:dm", surface=surface, created=1.0, updated=1.0)
def test_an_ordinary_session_has_nothing_to_add_and_loads_nothing():
    closings = work_closings(Needs({}), session("cli"), None)
    assert [type(each) for each in closings] == [ParentEnd]
    assert closings[0].changes(View(id="s"), ENDED) == ()
def test_a_session_whose_mandate_is_gone_is_ended_as_its_kind():
    assert len(work_closings(Needs({}), session("child"), None)) == 2
    assert len(work_closings(Needs({}), session("child"), Mandate(kind=Work.CHILD))) == 2
def test_a_mandate_narrows_and_never_widens():
    mandate = Mandate(kind=Work.CHILD, toolsets=("files", "web"), denied=(Capability.NET,))
    assert toolsets_by(mandate, ("web", "shell")) == ("web",)
    assert toolsets_by(mandate, ("shell",)) == ("todo",)
    assert toolsets_by(None, ("shell",)) == ("shell",)
    assert Capability.NET not in granted_by(mandate, None)
    assert list(granted_by(mandate, ["net", "exec"])) == ["exec"]
@pytest.mark.timeout(60)
async def test_agents_that_a_process_left_are_worked_on_by_the_next(tmp_path):
    pace = Pace(first=30.0)
    def script(heard: Heard) -> Piece | Answer:
        if "You work for another agent" in heard.system:
            return Answer(pieces=(Say("Found."),), pace=pace) if slow else Say("Found.")
        return Say("Begun.") if spoken(heard) else Call("delegate_task", {"goal": "dig", "background": True})
    slow = True
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with another(home, server) as here:
            await here.say("Go")
            assert await awaits_reports(here.runtime, here.record.id)
        slow = False
        async with another(home, server) as there:
            assert await resume_agents(there.runtime, there.record.id)
            await until_quiet(there)
            assert any("Found." in line for line in await there.transcript())
            assert not await resume_agents(there.runtime, there.record.id)
async def until_quiet(here: Place) -> None:
    async with asyncio.timeout(20):
        while await awaits_reports(here.runtime, here.record.id):
            await asyncio.sleep(0.02)
async def test_a_session_without_agents_awaits_nothing(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("Hi")
        await here.runtime.hermes.idle()
        assert not await awaits_reports(here.runtime, here.record.id)
def test_nothing_of_delegation_is_loaded_before_it_is_used():
    code = (
        "import sys, hermes_agent.app.opening, hermes_agent.app.commands, hermes_agent.cli.chat.chat_session\n"
        "from hermes_agent.cli.chat.chat_session import names; names()\n"
        "print([name for name in sys.modules if 'delegation' in name or 'store.work.' in name])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "['hermes_agent.work.delegation', 'hermes_agent.work.delegation.settings']"
