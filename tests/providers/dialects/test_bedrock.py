"""Converse requests, field by field."""

import json

import pytest

from hermes_agent.core.errors import (
    AuthRefused,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
    TimedOut,
)
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
    ToolSchema,
    said,
)
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.dialects.bedrock import DIALECT
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.testing.faults import Status
from tests.providers.asking import DIALECTS, PIXEL, PREFIX, result, route_to, talking

SONNET = "bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0"
OPUS = "bedrock/global.anthropic.claude-opus-4-6-v1"
LLAMA = "bedrock/us.meta.llama4-maverick-17b-instruct-v1:0"
SPOKEN = next(spoken for spoken in DIALECTS if spoken.name == "bedrock")
ONCE = ModelSettings(max_retries=0)
POINT = {"cachePoint": {"type": "default"}}


def sent(model: str, messages: list[Message], prefix: Prefix = PREFIX, **changes: object):
    request = ModelRequest(
        call_id="c",
        session="s",
        run="r",
        turn=1,
        purpose="chat",
        prefix=prefix,
        messages=messages,
        effort=str(changes.get("effort", "none")),
        use_tools=bool(changes.get("use_tools", True)),
    )
    compiler = DIALECT.compiler(route_to(model))
    compiler.take(request)
    return compiler.write(request, changes.get("max_output"))


def body(model: str, messages: list[Message], **changes: object) -> dict:
    return json.loads(sent(model, messages, **changes).body)


def content(*parts) -> list[dict]:
    """What a message with these parts holds, on a model without cache points."""
    return body(LLAMA, [Message(role=Role.USER, parts=parts)])["messages"][0]["content"]


def test_the_model_is_in_the_address_and_a_bearer_key_in_its_header():
    wire = sent(SONNET, [said("Hi")])

    assert wire.path == "/model/global.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    assert wire.headers["authorization"] == "Bearer test-key"
    arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.x"
    assert (
        sent(f"bedrock/{arn}", [said("Hi")]).path
        == f"/model/{arn.replace(':', '%3A').replace('/', '%2F')}/converse-stream"
    )


def test_cache_points_follow_system_tools_and_the_last_two_user_turns():
    messages = [said("one"), Message(role=Role.ASSISTANT, parts=(Text(text="two"),)), said("three")]
    messages += [Message(role=Role.ASSISTANT, parts=(Text(text="four"),)), said("five")]
    plain = body(SONNET, messages)

    assert list(plain) == ["system", "toolConfig", "messages", "inferenceConfig"]
    assert plain["system"] == [{"text": PREFIX.system}, POINT]
    assert plain["toolConfig"]["tools"][-1] == POINT
    assert [message["content"][-1] == POINT for message in plain["messages"]] == [False, False, True, False, True]


def test_a_prompt_is_kept_for_an_hour_where_that_is_wanted():
    compiler = DIALECT.compiler(route_to(SONNET, cache_ttl="1h"))
    request = ModelRequest(
        call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=PREFIX, messages=[said("Hi")]
    )
    compiler.take(request)
    written = compiler.write(request, None).body

    assert written.count(b'{"cachePoint":{"type":"default","ttl":"1h"}}') == written.count(b"cachePoint") == 3


def test_a_model_that_is_not_known_gets_no_cache_points_and_no_limit_of_ours():
    plain = body(LLAMA, [said("Hi")])

    assert "cachePoint" not in json.dumps(plain)
    assert list(plain) == ["system", "toolConfig", "messages"]
    assert body(LLAMA, [said("Hi")], max_output=100)["inferenceConfig"] == {"maxTokens": 100}


@pytest.mark.parametrize(
    ("model", "effort", "fields"),
    [
        (SONNET, "high", {"thinking": {"type": "enabled", "budget_tokens": 16_000}}),
        (SONNET, "none", None),
        (
            OPUS,
            "xhigh",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}},
        ),
        (OPUS, "none", {"thinking": {"type": "disabled"}}),
        (LLAMA, "high", None),
    ],
)
def test_a_level_is_told_in_the_models_own_fields(model: str, effort: str, fields: dict | None):
    assert body(model, [said("Hi")], effort=effort).get("additionalModelRequestFields") == fields


def test_thinking_goes_back_verbatim_to_its_maker_and_to_nobody_else():
    parts = (
        Thinking(text="hm", opaque="c2ln", maker=SONNET),
        Thinking(text="", opaque="c2VjcmV0", maker=SONNET, redacted=True),
        Thinking(text="unsigned", maker=SONNET),
        Text(text="Yes."),
    )
    messages = [said("Hi"), Message(role=Role.ASSISTANT, parts=parts), said("Go on")]

    assert body(SONNET, messages)["messages"][1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "c2VjcmV0"}},
        {"text": "Yes."},
    ]
    assert body(OPUS, messages)["messages"][1]["content"] == [{"text": "Yes."}]


def test_results_hold_pictures_and_errors_and_are_never_empty():
    calls = [ToolCall(id=f"c{number}", name="read_file", arguments={}) for number in range(3)]
    answers = (result("c0", "see", image=True), result("c1", "gone", is_error=True), result("c2", ""))
    messages = [said("Hi"), Message(role=Role.ASSISTANT, parts=tuple(calls))]
    messages += [Message(role=Role.TOOL, parts=(one,)) for one in answers]

    blocks = [block["toolResult"] for block in body(LLAMA, messages)["messages"][2]["content"]]
    assert blocks[0]["content"] == [{"text": "see"}, {"image": {"format": "png", "source": {"bytes": PIXEL}}}]
    assert blocks[1] == {"toolUseId": "c1", "content": [{"text": "gone"}], "status": "error"}
    assert blocks[2]["content"] == [{"text": "(nothing)"}]


def test_tools_that_may_not_be_used_are_named_and_forbidden_in_words():
    plain = body(SONNET, [said("Hi")], use_tools=False)

    assert len(plain["toolConfig"]["tools"]) == 3
    assert "toolChoice" not in plain["toolConfig"]
    assert plain["messages"][0]["content"][-2:] == [POINT, {"text": "(No tool may be called now: answer in words.)"}]


def test_a_tool_without_a_description_is_described_by_its_name():
    bare = ToolSchema(name="now", description="", parameters={"type": "object"})
    schema = {"json": {"type": "object", "properties": {}}}

    plain = body(LLAMA, [said("Hi")], prefix=Prefix(system="", tools=(bare,), hash="0"))
    assert plain["toolConfig"]["tools"] == [{"toolSpec": {"name": "now", "description": "now", "inputSchema": schema}}]
    assert list(body(LLAMA, [said("Hi")], prefix=Prefix(system="", tools=(), hash="0"))) == ["messages"]


def test_what_the_service_cannot_take_is_told_in_words():
    blocks = content(
        Image(url="https://example.org/a.png"),
        Image(media_type="image/tiff", data="eA=="),
        File(name="a.zip", media_type="application/zip", data="eA=="),
        File(name="a.txt", media_type="text/plain", data="aGk="),
    )

    assert [next(iter(block)) for block in blocks] == ["text"] * 4
    assert ["https://example.org/a.png" in blocks[0]["text"], "image/tiff" in blocks[1]["text"]] == [True, True]
    assert ["a.zip" in blocks[2]["text"], blocks[3]["text"]] == [True, "[a.txt]\nhi"]


async def test_documents_are_sent_with_words_and_names_that_the_service_takes():
    papers = (
        File(name="Bericht  (März).pdf", media_type="application/pdf", data="cGRm"),
        File(name="Bericht  (März).pdf", media_type="application/pdf", data="cGRm2g=="),
        File(name="\u4e16\u754c", media_type="application/msword", data="ZG9j"),
    )
    async with talking(SPOKEN, [Say("Read.")]) as talk:
        talk.messages[:] = [Message(role=Role.USER, parts=papers)]
        await talk.ask()
        blocks = talk.server.exchanges[0].body["messages"][0]["content"]

    names = [block["document"]["name"] for block in blocks if "document" in block]
    assert names[0].startswith("Bericht (M rz) pdf ")
    assert len(set(names)) == 3
    assert {"text": "(See the document.)"} in blocks


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (Status(429, "slow", kind="ThrottlingException"), RateLimited),
        (Status(429, "not ready", kind="ModelNotReadyException"), Overloaded),
        (Status(403, "expired", kind="ExpiredTokenException"), AuthRefused),
        (Status(404, "gone", kind="ResourceNotFoundException"), ModelNotFound),
        (Status(400, "The provided model identifier is invalid."), ModelNotFound),
        (Status(424, "failed", kind="ModelErrorException"), ServerFailed),
        (Status(408, "slow", kind="ModelTimeoutException"), TimedOut),
        (Status(400, "quota", kind="ServiceQuotaExceededException"), RateLimited),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
async def test_a_refusal_is_told_by_the_kind_in_its_header(refusal: Status, kind: type[ProviderError]):
    async with talking(SPOKEN, [refusal], settings=ONCE) as talk:
        with pytest.raises(kind) as caught:
            await talk.ask()
    assert type(caught.value) is kind
