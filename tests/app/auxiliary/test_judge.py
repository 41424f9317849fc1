"""The judge of one run; what its opinion leads to is tested beside the guards."""

from hermes_agent.agent.session import Session
from hermes_agent.app.auxiliary.judge import Judge
from hermes_agent.core.ids import RandomIds
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.scripted import ScriptedModel


async def test_a_question_belongs_to_the_run_and_has_its_deadline():
    heard = []

    class Listening(ScriptedModel):
        def ask(self, request):
            heard.append(request)
            return super().ask(request)

    async def make():
        return Listening([Say(" APPROVE\n")])

    judge = Judge(make=make, view=Session(id="s", run="r", turn=3), ids=RandomIds(1), deadline=12.0)

    assert await judge("May `rm -rf build` run?") == "APPROVE"
    (request,) = heard
    assert (request.session, request.run, request.turn, request.purpose, request.deadline) == ("s", "r", 3, "judge", 12)
    assert request.messages[0].text == "May `rm -rf build` run?"
    assert not request.prefix.tools
