"""What the Converse protocol lets in, judged by AWS's own SDK."""

import pytest

from hermes_agent.core.messages import File, Image
from hermes_agent.providers.demo.script import RequestRefused, Say
from hermes_agent.testing.model_servers import KEY
from tests.doubles.anthropic_request import sign
from tests.doubles.bedrock_request import read_bedrock
from tests.doubles.model_servers import bedrock_model
from tests.sdks import SECRET, bedrock_talk

MODEL = "global.anthropic.claude-sonnet-4-5-20250929-v1:0"
HELLO = {"role": "user", "content": [{"text": "hello"}]}
SPEC = {"name": "read_file", "description": "Read.", "inputSchema": {"json": {"type": "object"}}}
TOOLS = {"toolConfig": {"tools": [{"toolSpec": SPEC}]}}
ASKED = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "read_file", "input": {}}}]}
TWICE = {"role": "assistant", "content": ASKED["content"] * 2}
ANSWERED = {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}]}}]}
PAPER = {"format": "pdf", "name": "a paper", "source": {"bytes": b"pdf"}}
POINT = {"cachePoint": {"type": "default"}}


def ask(messages, **more):
    with bedrock_talk(bedrock_model([Say("Yes.")], secrets={KEY: SECRET})) as (server, client):
        client.converse(modelId=MODEL, messages=messages, **more)
        return server.asked[0]


def refused(messages, words, **more):
    with bedrock_talk(bedrock_model([Say("Yes.")], secrets={KEY: SECRET})) as (_server, client):
        invalid = client.exceptions.ValidationException
        with pytest.raises(invalid, match=words):
            client.converse(modelId=MODEL, messages=messages, **more)


def test_pictures_documents_system_tools_and_limits_are_heard():
    content = [
        {"text": "look"},
        {"image": {"format": "png", "source": {"bytes": b"png"}}},
        {"document": PAPER},
        POINT,
    ]
    heard = ask(
        [{"role": "user", "content": content}],
        system=[{"text": "Be brief."}],
        inferenceConfig={"maxTokens": 100},
        additionalModelRequestFields={"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        **TOOLS,
    )

    words, picture, paper = heard.last.parts
    assert (words.text, heard.system, heard.max_output, heard.effort) == ("look", "Be brief.", 100, "low")
    assert isinstance(picture, Image)
    assert isinstance(paper, File)
    assert (picture.data, paper.name) == ("cG5n", "a paper")
    assert [tool.name for tool in heard.tools] == ["read_file"]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([ASKED], "must start with a user message"),
        ([HELLO, HELLO], "must alternate"),
        ([{"role": "user", "content": []}], "is empty"),
        ([{"role": "user", "content": [{"text": " "}]}], "is blank"),
        ([HELLO, ASKED], "Expected toolResult blocks"),
        ([HELLO, ASKED, HELLO], "Expected toolResult blocks"),
        ([HELLO, TWICE, ANSWERED], "duplicate Ids"),
        ([ANSWERED], "exceeds the number of toolUse blocks"),
        ([{"role": "user", "content": [{"document": PAPER}]}], "text block is required"),
        ([{"role": "user", "content": [{"text": "x"}, {"document": {**PAPER, "name": "a.pdf"}}]}], "unsupported"),
        ([{"role": "user", "content": [{"text": "x"}, POINT] * 5}], "maximum of 4 blocks"),
    ],
)
def test_what_the_service_refuses_is_refused(messages, words):
    refused(messages, words, **TOOLS)


def test_calls_without_a_tool_config_are_refused():
    refused([HELLO, ASKED, ANSWERED], "toolConfig field must be defined")


@pytest.mark.parametrize(("signature", "fine"), [(sign("Hm."), True), ("Zm9yZWlnbg==", False)])
def test_a_thought_with_a_foreign_signature_is_refused(signature, fine):
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": signature}}}
    messages = [HELLO, {"role": "assistant", "content": [thought, {"text": "Yes."}]}, HELLO]
    if fine:
        assert ask(messages).messages[1].parts[0].opaque == signature
    else:
        refused(messages, "Invalid `signature` in `thinking` block")


@pytest.mark.parametrize(("budget", "words"), [(4000, "must be greater than"), (10, "greater than or equal to 1024")])
def test_a_thinking_budget_that_leaves_no_room_is_refused(budget, words):
    thinking = {"thinking": {"type": "enabled", "budget_tokens": budget}}
    refused([HELLO], words, inferenceConfig={"maxTokens": 4000}, additionalModelRequestFields=thinking)


@pytest.mark.parametrize(
    ("body", "words"),
    [(b"{", "not valid JSON"), (b'{"modelId": "x"}', "extraneous key"), (b"{}", "must start with a user message")],
)
def test_a_body_that_is_no_request_is_refused(body, words):
    with pytest.raises(RequestRefused, match=words):
        read_bedrock(body, MODEL, stream=True)
