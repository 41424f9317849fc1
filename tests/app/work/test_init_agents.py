"""What work adds to runs: nothing to an ordinary session, and the end of what belongs to one that has agents."""

import asyncio
import subprocess
import sys

import pytest

from hermes_agent.agent.session import Session as View
from hermes_agent.app.work import ParentEnd, awaits_reports, granted_by, resume_agents, toolsets_by, work_closings
from hermes_agent.core.effects import Capability
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.core.mandate import Mandate, Work
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
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert found.strip() == "['hermes_agent.work.delegation', 'hermes_agent.work.delegation.settings']"
