from wcwidth import wcswidth

from hermes_agent.cli.chat.status import Status
from hermes_agent.core.events import Replied
from hermes_agent.core.messages import Message, Role
from hermes_agent.core.model import StopReason, Usage


def status() -> Status:
    return Status(model="vendor/model", window=1000, session="20260101_120000_abcdef")


def reply(cost: float | None = 0.01, usage: Usage | None = None) -> Replied:
    return Replied(
        turn=1,
        call_id="c",
        message=Message(role=Role.ASSISTANT, parts=()),
        stop=StopReason.END,
        usage=usage or Usage(input=200, output=50),
        provider="vendor",
        model="model",
        cost=cost,
        seconds=1.0,
    )


def test_context_is_what_the_last_request_filled_and_costs_add_up():
    line = status()
    line.see(reply())
    line.see(reply(usage=Usage(input=450, output=50)))

    assert line.context == "context 50 %"
    assert line.price == "$0.0200"


def test_unknown_is_said_and_not_taken_for_nothing():
    line = status()
    assert (line.context, line.price) == ("", "")

    line.see(reply(cost=None, usage=Usage(known=False)))
    assert (line.context, line.price) == ("context unknown", "cost unknown")

    line.see(reply())
    assert (line.context, line.price) == ("context 25 %", "$0.0100 + unknown")


def test_the_least_important_leaves_first():
    line = status()
    line.see(reply())
    line.title, line.notice = "日本語の題", True

    assert line.line("idle", 120) == "idle · ! config.yaml · vendor/model · context 25 % · $0.0100 · 日本語の題"
    assert line.line("idle", 60) == "idle · ! config.yaml · vendor/model · context 25 % · $0.0100"
    assert line.line("idle", 40) == "idle · vendor/model · context 25 %"
    for columns in range(1, 80):
        assert wcswidth(line.line("idle", columns)) <= columns
