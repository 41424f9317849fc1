"""Any history becomes a request that the dialect's service takes, judged by the server that refuses what it refuses."""

import copy
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hermes_agent.core.messages import (
    File,
    Image,
    Message,
    ModelRequest,
    Prefix,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSchema,
)
from hermes_agent.host.inbound.message import Request
from hermes_agent.host.late import late
from hermes_agent.providers.demo.script import Heard
from hermes_agent.providers.dialects import DIALECTS as TABLE
from tests.doubles import anthropic_request, responses_request
from tests.providers.asking import DIALECTS, PIXEL, PREFIX, READ, Spoken, route_to

EVERY = pytest.mark.parametrize("spoken", DIALECTS, ids=lambda spoken: spoken.name)
TEXTS = st.builds(lambda text: Text(text=text), st.sampled_from(["", "  ", "word", "more\n", "\ud83d", "\x00"]))
PICTURES = st.sampled_from(
    [Image(data=PIXEL), Image(data=PIXEL, media_type="image/jpeg"), Image(data="PHN2Zz4=", media_type="image/svg+xml")]
)
FILES = st.sampled_from(
    [File(name="a.md", media_type="text/plain", data="aGk="), File(name="b", media_type="text/x", data="?")]
)
IDS = st.sampled_from(["a", "b", "weird id/with:signs", "x" * 90, ""])
NAMES = st.sampled_from(["read_file", "server.tool/with signs", "", "n" * 200, "世界"])
CALLS = st.builds(
    lambda id_, name, broken: ToolCall(
        id=id_, name=name, arguments={} if broken else {"path": "\ud83d"}, broken=broken
    ),
    IDS,
    NAMES,
    st.sampled_from(["", '{"pa', "[]"]),
)
RESULTS = st.builds(
    lambda id_, parts, error: ToolResult(call_id=id_, name="read_file", parts=tuple(parts), is_error=error),
    IDS,
    st.lists(TEXTS | PICTURES | FILES, max_size=2),
    st.booleans(),
)


def signed(spoken: Spoken, text: str) -> Thinking:
    """Thinking as the dialect's server would have made it, where it can be told from another's."""
    match spoken.name:
        case "anthropic" | "bedrock":
            opaque = anthropic_request.sign(text)
        case "openai_responses":
            item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": responses_request.seal(text)}
            opaque = json.dumps(item)
        case _:
            return Thinking(text=text, maker="elsewhere/model", opaque="c2ln")
    return Thinking(text=text, maker=spoken.model, opaque=opaque)


def histories(spoken: Spoken) -> st.SearchStrategy[list[Message]]:
    thoughts = st.sampled_from([signed(spoken, "hm"), Thinking(text="x", opaque="c2ln", maker="elsewhere/model")])
    replies = st.lists(
        TEXTS | thoughts | CALLS, max_size=4, unique_by=lambda part: part.id if isinstance(part, ToolCall) else id(part)
    )
    return st.lists(
        st.builds(lambda parts: Message(role=Role.ASSISTANT, parts=tuple(parts)), replies)
        | st.builds(
            lambda parts: Message(role=Role.USER, parts=tuple(parts)), st.lists(TEXTS | PICTURES | FILES, max_size=3)
        )
        | st.builds(lambda part: Message(role=Role.TOOL, parts=(part,)), RESULTS),
        max_size=10,
    )


def read(spoken: Spoken, messages: list[Message], prefix: Prefix, effort: str) -> Heard:
    """What the server hears of a request with these messages. Raises `RequestRefused`."""
    request = ModelRequest(
        call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=prefix, messages=messages, effort=effort
    )
    compiler = late(TABLE[spoken.name]).compiler(route_to(spoken.model))
    compiler.take(request)
    wire = compiler.write(request, 4_000)
    headers = {name.lower(): value for name, value in wire.headers.items()}
    server = spoken.serve([])
    path, _, query = (server._wire.base + wire.path).partition("?")
    sent = Request(method="POST", path=path, query=query, headers=headers, body=wire.body, arrived=time.monotonic())
    return server._wire.read(sent)


@EVERY
@given(st.data(), st.sampled_from(["none", "medium", "max"]))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_history_is_a_request_that_the_service_takes(spoken: Spoken, data: st.DataObject, effort: str):
    messages = data.draw(histories(spoken))
    before = copy.deepcopy(messages)
    heard = read(spoken, messages, PREFIX, effort)
    assert messages == before
    said = sum(part.text == "word" for message in messages for part in message.parts if isinstance(part, Text))
    assert sum(message.text.count("word") for message in heard.messages) >= said


NAMED = st.text(min_size=1, max_size=80)


@EVERY
@given(st.lists(NAMED, min_size=1, max_size=4, unique=True))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_names_of_tools_are_a_request_that_the_service_takes(spoken: Spoken, names: list[str]):
    tools = tuple(ToolSchema(name=name, description="", parameters=READ.parameters) for name in names)
    heard = read(spoken, [], Prefix(system="", tools=tools, hash="1"), "medium")
    assert len(heard.tools) == len(names)
