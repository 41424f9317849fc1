"""Delegation in the whole system, with a scripted model."""

from hermes_agent.core.messages import Role, ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from tests.app.place import Place, place, spoken

WORKER = "You work for another agent"


def is_child(heard: Heard) -> bool:
    return WORKER in heard.system


def goal_of(heard: Heard) -> str:
    first = next(message for message in heard.messages if message.role is Role.USER and "Your goal:" in message.text)
    return first.text.partition("Your goal: ")[2].partition("\n")[0]


def results(here: Place) -> list[str]:
    """What the model was told of its calls, last."""
    parts = [part for message in here.server.asked[-1].messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, ToolResult)]


def delegating(**arguments: object):
    """A parent that delegates once and then repeats what it got; a child that says what its goal was."""

    def script(heard: Heard) -> Piece:
        if is_child(heard):
            return Say(f"Did: {goal_of(heard)}")
        return Say("All done.") if spoken(heard) else Call("delegate_task", arguments)

    return script


async def test_a_call_waits_for_the_reports_of_its_children(tmp_path):
    async with place(tmp_path, delegating(tasks=[{"goal": "one"}, {"goal": "two"}])) as here:
        ended = await here.say("Split it")
        told = results(here)[0]

        assert ended.text == "All done."
        assert "Did: one" in told
        assert "Did: two" in told
        children = await here.runtime.store.children.of(here.record.id)
        assert [(child.n, child.state, child.outcome, child.delivery) for child in children] == [
            (1, "ended", "answered", "call"),
            (2, "ended", "answered", "call"),
        ]
