"""A question to the judge; what its opinion leads to is tested beside the guards."""

from hermes_agent.agent.session import Session
from hermes_agent.app.auxiliary.judge import judged
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.scripted import ScriptedModel


async def test_a_question_belongs_to_the_run_and_has_its_deadline():
    heard = []

    class Listening(ScriptedModel):
        def ask(self, request):
            heard.append(request)
            return super().ask(request)

    view = Session(id="s", run="r", turn=3)
    words = await judged(
        Listening([Say(" APPROVE\n")]), "May `rm -rf build` run?", view=view, call_id="c", deadline=12.0
    )

    assert words == "APPROVE"
    (request,) = heard
    assert (request.session, request.run, request.turn, request.call_id) == ("s", "r", 3, "c")
    assert (request.purpose, request.deadline) == ("judge", 12)
    assert request.messages[0].text == "May `rm -rf build` run?"
    assert not request.prefix.tools
