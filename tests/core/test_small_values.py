"""Ids, clock, sections, messages, errors, events: the small words of the vocabulary."""

import re

import pytest

from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import GoingInCircles, HermesError, ProviderError, RateLimited, ToolError
from hermes_agent.core.events import Notice, ToolProgress, ToolStarted, is_live
from hermes_agent.core.messages import (
    Image,
    Message,
    Origin,
    Role,
    Text,
    TextDelta,
    Thinking,
    Through,
    ToolCall,
    ToolResult,
    ToolSchema,
    Trust,
    said,
    trust_of,
)
from hermes_agent.core.section import Section, estimate_tokens, freeze, join_sections, tools_text
from hermes_agent.core.tool import MARK, tool
from hermes_agent.testing.scripted import ScriptedModel


def test_a_session_id_tells_when_it_began() -> None:
    assert re.fullmatch(r"19700101_000100_[0-9a-f]{6}", RandomIds().session(60.0))


def test_a_seed_gives_the_same_ids_again() -> None:
    one, other = RandomIds(7), RandomIds(7)

    assert [one.short() for _ in range(3)] == [other.short() for _ in range(3)]
    assert re.fullmatch(r"[0-9a-f]{12}", one.short())


def test_ids_are_never_made_twice_however_many():
    ids = RandomIds()
    assert len({ids.short() for _ in range(3_000)}) == 3_000


async def test_the_system_clock_sleeps_forward() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0.001)

    assert clock.monotonic() > before
    assert clock.now() > 1.7e9


def test_tokens_are_bytes_by_four_rounded_up() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "ääää")] == [0, 1, 1, 2, 2]


def test_empty_sections_leave_no_gap() -> None:
    sections = (Section(name="a", text="one\n"), Section(name="b", text=" "), Section(name="c", text="two"))

    assert join_sections(sections) == "one\n\ntwo"
    assert sections[0].tokens == 1


def test_a_prefix_hash_covers_text_and_tools() -> None:
    section = Section(name="a", text="one")
    schema = ToolSchema(name="t", description="d", parameters={"type": "object"})

    hashes = {freeze((section,), ()).hash, freeze((section,), (schema,)).hash, freeze((), (schema,)).hash}

    assert len(hashes) == 3
    assert freeze((section,), (schema,)) == freeze((section,), (schema,))


def test_the_words_of_a_message_leave_tool_traffic_out() -> None:
    call = ToolCall(id="1", name="t", arguments={})
    message = Message(role=Role.ASSISTANT, parts=(Text(text="a"), call, Text(text="b")))

    assert message.text == "ab"
    assert message.tool_calls == (call,)
    assert said("hi").parts == (Text(text="hi", origin=Origin.OWNER),)


def test_the_words_of_a_result_leave_images_out() -> None:
    result = ToolResult(call_id="1", name="t", parts=(Text(text="a"), Image(data="x")))

    assert result.text == "a"


def test_what_asks_a_model_goes_by_its_name_and_window() -> None:
    model = ScriptedModel([])
    through = Through(model)

    assert (through.name, through.window) == (model.name, model.window)


def test_errors_carry_what_routing_needs() -> None:
    error = RateLimited("slow down", provider="p", model="m", status=429, retry_after=3.0)

    assert isinstance(error, ProviderError)
    assert isinstance(error, HermesError)
    assert (error.retryable, error.retry_after, str(error)) == (True, 3.0, "slow down")
    assert ToolError("x", hint="y").hint == "y"


@pytest.mark.parametrize(
    ("event", "live"),
    [
        (TextDelta(text="x"), True),
        (ToolProgress(call_id="c", tool="t", text="x"), True),
        (Notice(text="x"), False),
        (ToolStarted(turn=1, call_id="c", tool="t", effect=Effect.READS, summary=""), True),
        (ToolStarted(turn=1, call_id="c", tool="t", effect=Effect.EXEC, summary=""), False),
    ],
)
def test_only_what_is_not_logged_is_live(event: object, live: bool) -> None:
    assert is_live(event) is live


def test_a_mark_is_written_on_the_method() -> None:
    @tool(effect=Effect.WRITES, needs=(Capability.FS_WRITE,), paths=("path",))
    async def touch(path: str) -> str:
        return path

    mark = getattr(touch, MARK)
    assert (mark.effect, mark.needs, mark.paths, mark.core) == (Effect.WRITES, (Capability.FS_WRITE,), ("path",), True)


def test_the_text_of_many_tools_is_their_own():
    many = [(ToolSchema(name=f"t{number}", description="", parameters={}),) for number in range(40)]
    for _ in range(2):
        assert [f'"{tools[0].name}"' in tools_text(tools) for tools in many] == [True] * 40
    assert tools_text(many[-1]) is tools_text(many[-1])


def test_a_run_in_circles_reached_a_limit():
    assert GoingInCircles("The same call again.").limit == "guardrail"


def test_what_a_model_thinks_or_asks_for_is_as_clean_as_what_it_read():
    result = ToolResult(call_id="c", name="web", parts=(Text(text="x", origin=Origin.WEB),))

    assert trust_of(Thinking(text="hm")) is trust_of(ToolCall(id="c", name="web", arguments={})) is Trust.CLEAN
    assert trust_of(result) is Trust.OUTSIDE
    assert trust_of(Image(media_type="image/png", data="eA==", origin=Origin.WORKSPACE)) is Trust.WORKSPACE
