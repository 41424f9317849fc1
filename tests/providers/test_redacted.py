"""Of a secret that a model says, neither a piece of the stream nor the reply shows anything."""

from hermes_agent.core.model import Reply, TextDelta
from hermes_agent.host.secrets import Redaction
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.redacted import Redacted
from hermes_agent.testing.scripted import ScriptedModel
from tests.providers.test_budget import request

SECRET = "correct/horse+battery"


async def test_a_secret_is_in_no_piece_and_not_in_the_reply_and_all_else_is() -> None:
    model = Redacted(ScriptedModel([Say(f"The login is {SECRET}, as you see.")]), Redaction({SECRET: "LOGIN"}).hide)

    deltas = [each async for each in model.ask(request())]

    streamed = "".join(each.text for each in deltas if isinstance(each, TextDelta))
    assert SECRET not in streamed
    assert streamed.startswith("The login is ")
    assert streamed.endswith(", as you see.")
    assert isinstance(deltas[-1], Reply)
    assert deltas[-1].message.text == streamed
