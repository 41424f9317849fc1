"""One request and its reply."""

from hermes_agent.agent.ask import with_own_ids
from hermes_agent.core.events import Outcome, Replied
from hermes_agent.core.messages import Message, Retrying, Role, Text, TextDelta, ToolCall
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness


class Mute(ScriptedModel):
    """Breaks the contract: its stream ends without a reply."""

    async def ask(self, request):
        yield TextDelta(text="Well")


class Stutter(ScriptedModel):
    """An attempt fails after some words; the next one hangs until it is stopped."""

    async def ask(self, request):
        yield TextDelta(text="void ")
        yield Retrying(reason="overloaded", attempt=1, delay=0.0)
        yield TextDelta(text="heard")
        await self._clock.sleep(60)
        yield TextDelta(text="never")


def calling(*ids: str) -> Message:
    parts = (Text(text="Look."), *(ToolCall(id=each, name="t", arguments={}) for each in ids))
    return Message(role=Role.ASSISTANT, parts=parts)


def test_new_ids_stay_as_they_are():
    message = calling("a", "b")

    assert with_own_ids(message, {"c"}, "x") is message


def test_an_id_that_was_seen_gets_a_suffix_and_the_others_none():
    assert [call.id for call in with_own_ids(calling("a", "b"), {"b"}, "x").tool_calls] == ["a", "b_x"]


async def test_a_stream_without_a_reply_is_a_visible_failure(tmp_path):
    async with Harness(tmp_path, Mute([])).open() as harness:
        ended = await harness.say("Go")

        assert (ended.outcome, ended.error) == (Outcome.FAILED, "EmptyReply")


async def test_words_of_a_failed_attempt_are_not_kept(tmp_path):
    async with Harness(tmp_path, Stutter([])).open() as harness:
        await harness.tell("Go")
        heard = ""
        async for seen in harness.hermes.watch(harness.session):
            heard += seen.event.text if isinstance(seen.event, TextDelta) else ""
            if heard.endswith("heard"):
                break
        await harness.hermes.stop(harness.session)

        partial = [entry.event for entry in await harness.log() if isinstance(entry.event, Replied)]
        assert [(event.message.text, event.partial) for event in partial] == [("heard", True)]
        assert await harness.transcript() == ["user: Go", "assistant: heard"]
