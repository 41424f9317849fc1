"""What work adds to runs: nothing to an ordinary session, and the end of what belongs to one that has agents."""

import subprocess
import sys

from hermes_agent.agent.session import Session as View
from hermes_agent.app.work import ParentEnd, granted_by, toolsets_by, work_closings
from hermes_agent.core.effects import Capability
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.host.late import Needs
from hermes_agent.store.sessions import Session

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


def test_nothing_of_delegation_is_loaded_before_it_is_used():
    code = (
        "import sys, hermes_agent.app.opening, hermes_agent.app.commands, hermes_agent.cli.chat.chat_session\n"
        "from hermes_agent.cli.chat.chat_session import names; names()\n"
        "print([name for name in sys.modules if 'delegation' in name or 'store.work.' in name])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert found.strip() == "['hermes_agent.work.delegation', 'hermes_agent.work.delegation.settings']"
