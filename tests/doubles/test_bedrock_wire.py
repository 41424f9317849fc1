"""The Bedrock Converse protocol as a whole, judged by AWS's own SDK."""

import contextlib

import pytest
from botocore.exceptions import ClientError, EventStreamError

from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.script import Answer, Call, Say, Think
from hermes_agent.testing.faults import ErrorEvent, Malformed, Status
from hermes_agent.testing.model_servers import KEY
from tests.doubles.bedrock_wire import BedrockWire
from tests.doubles.model_servers import bedrock_model
from tests.sdks import SECRET, bedrock_talk

MODEL = "global.anthropic.claude-sonnet-4-5-20250929-v1:0"
HELLO = [{"role": "user", "content": [{"text": "hello"}]}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
SPEC = {"name": "read_file", "description": "Read.", "inputSchema": {"json": SCHEMA}}
TOOLS = {"toolConfig": {"tools": [{"toolSpec": SPEC}]}}
CACHE = {"cachePoint": {"type": "default"}}
SECRETS = {KEY: SECRET}


def serving(script, **more):
    return bedrock_talk(bedrock_model(script, secrets=SECRETS), **more)


def events(client, **asked):
    with contextlib.closing(client.converse_stream(modelId=MODEL, **{"messages": HELLO, **asked})["stream"]) as stream:
        return list(stream)


def test_the_sdk_signs_a_request_and_reads_a_whole_reply():
    with serving([Say("Good morning.")]) as (server, client):
        reply = client.converse(modelId=MODEL, messages=HELLO)

    assert reply["output"]["message"]["content"] == [{"text": "Good morning."}]
    assert (reply["stopReason"], server.asked[0].model) == ("end_turn", MODEL)


def test_a_signature_with_another_secret_is_refused():
    with (
        serving([Say("Yes.")], secret="another") as (_server, client),
        pytest.raises(ClientError, match="signature we calculated does not match") as caught,
    ):
        client.converse(modelId=MODEL, messages=HELLO)

    assert caught.value.response["Error"]["Code"] == "InvalidSignatureException"


@pytest.mark.parametrize(
    ("headers", "key"), [({"authorization": f"Bearer {KEY}"}, KEY), ({}, "")], ids=["bearer", "nothing"]
)
def test_a_bearer_key_is_a_credential_too(headers, key):
    """AWS's SDK shows one over https only."""
    request = Request(method="POST", path="/", query="", headers=headers, body=b"", arrived=0.0)

    assert BedrockWire({}).key(request) == key


def test_the_sdk_reads_the_event_stream_of_thinking_words_and_a_call():
    pieces = [Think("Let me look at it first."), Say("Reading it now, one moment."), Call("read_file", {"path": "ä"})]
    with serving([pieces]) as (_server, client):
        heard = events(client, **TOOLS)

    deltas = [event["contentBlockDelta"] for event in heard if "contentBlockDelta" in event]
    thoughts = [delta["delta"]["reasoningContent"] for delta in deltas if "reasoningContent" in delta["delta"]]
    assert "".join(thought.get("text", "") for thought in thoughts) == "Let me look at it first."
    assert thoughts[-1]["signature"]
    assert "".join(delta["delta"].get("text", "") for delta in deltas) == "Reading it now, one moment."
    arguments = [delta["delta"]["toolUse"]["input"] for delta in deltas if "toolUse" in delta["delta"]]
    assert "".join(arguments) == '{"path": "ä"}'
    (start,) = [event["contentBlockStart"] for event in heard if "contentBlockStart" in event]
    assert start["start"]["toolUse"]["name"] == "read_file"
    assert [next(iter(event)) for event in heard[-2:]] == ["messageStop", "metadata"]
    assert heard[-2]["messageStop"]["stopReason"] == "tool_use"


def test_the_sdk_makes_a_tool_round_trip_with_its_signed_thoughts_and_a_picture():
    script = [[Think("Hm."), Think("secret", redacted=True), Call("read_file", {"path": "a"})], Say("It says hello.")]
    with serving(script) as (server, client):
        first = client.converse(modelId=MODEL, messages=HELLO, **TOOLS)["output"]["message"]
        picture = {"image": {"format": "png", "source": {"bytes": b"png"}}}
        result = {
            "toolUseId": first["content"][2]["toolUse"]["toolUseId"],
            "content": [{"text": "hello"}, picture],
            "status": "error",
        }
        back = [*HELLO, first, {"role": "user", "content": [{"toolResult": result}]}]
        second = client.converse(modelId=MODEL, messages=back, **TOOLS)["output"]["message"]

    answered = server.asked[1].last.parts[0]
    assert second["content"][0]["text"] == "It says hello."
    assert (answered.name, answered.is_error, answered.parts[1].data) == ("read_file", True, "cG5n")


def test_usage_keeps_cached_tokens_beside_the_input():
    usage = Usage(input=1000, output=70, cached=600, cache_write=300, reasoning=50)
    with serving(lambda _: Answer(pieces=(Say("Yes."),), usage=usage)) as (_server, client):
        streamed = events(client)[-1]["metadata"]["usage"]
        whole = client.converse(modelId=MODEL, messages=HELLO)["usage"]

    for told in (streamed, whole):
        assert (told["inputTokens"], told["outputTokens"], told["totalTokens"]) == (100, 70, 1070)
        assert (told["cacheReadInputTokens"], told["cacheWriteInputTokens"]) == (600, 300)


def test_only_what_a_cache_point_follows_is_cached():
    system = [{"text": "word " * 500}]
    with serving(lambda _: Say("Yes.")) as (_server, client):
        first = client.converse(modelId=MODEL, messages=HELLO, system=[*system, CACHE])["usage"]
        again = client.converse(modelId=MODEL, messages=HELLO, system=[*system, CACHE])["usage"]
        plain = client.converse(modelId=MODEL, messages=HELLO, system=system)["usage"]

    assert (first["cacheReadInputTokens"], again["cacheWriteInputTokens"]) == (0, 0)
    assert first["cacheWriteInputTokens"] == again["cacheReadInputTokens"] > 600
    assert (plain["cacheReadInputTokens"], plain["cacheWriteInputTokens"]) == (0, 0)


@pytest.mark.parametrize(
    ("reason", "word"),
    [(StopReason.LENGTH, "max_tokens"), (StopReason.REFUSED, "content_filtered"), (None, "end_turn")],
)
def test_the_stop_reason_is_told_in_the_services_words(reason, word):
    with serving([Answer(pieces=(Say("Yes"),), stop=reason)]) as (_server, client):
        assert client.converse(modelId=MODEL, messages=HELLO)["stopReason"] == word


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
        (404, "ResourceNotFoundException"),
        (408, "ModelTimeoutException"),
        (424, "ModelErrorException"),
        (400, "ValidationException"),
        (403, "AccessDeniedException"),
    ],
)
def test_a_status_is_the_sdks_typed_error(status, kind):
    with serving([Status(status, "slowly")]) as (_server, client):
        typed = getattr(client.exceptions, kind)
        with pytest.raises(typed, match="slowly") as caught:
            events(client)

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_an_unknown_model_is_refused():
    model = bedrock_model([Say("Yes.")], secrets=SECRETS, models=("another",))
    with bedrock_talk(model) as (_server, client):
        unknown = client.exceptions.ValidationException
        with pytest.raises(unknown, match="model identifier is invalid"):
            client.converse(modelId=MODEL, messages=HELLO)


def test_an_access_key_that_is_not_let_in_is_refused():
    model = bedrock_model([Say("Yes.")], secrets=SECRETS, keys=("another",))
    with (
        bedrock_talk(model) as (_server, client),
        pytest.raises(ClientError, match="security token included in the request is invalid") as caught,
    ):
        client.converse(modelId=MODEL, messages=HELLO)

    assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(529, "serviceUnavailableException"), (429, "throttlingException"), (400, "validationException")],
)
def test_an_exception_in_a_stream_reaches_the_sdk(status, kind):
    with (
        serving([ErrorEvent(status=status, message="Too much")]) as (_server, client),
        pytest.raises(EventStreamError, match="Too much") as caught,
    ):
        events(client)

    assert caught.value.response["Error"]["Code"] == kind


def test_a_wrong_checksum_is_noticed_by_the_sdk():
    with serving([Malformed()]) as (_server, client), pytest.raises(Exception, match="Checksum mismatch"):
        events(client)
