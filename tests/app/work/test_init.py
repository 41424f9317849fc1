"""A session without a person is narrowed by its mandate, wherever its runs begin, and does nothing without one."""

from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.work import NOTHING, granted_by, toolsets_by
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.effects import Capability
from hermes_agent.core.events import Outcome
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
