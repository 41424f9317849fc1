"""generateContent requests, field by field."""

import json

import pytest

from hermes_agent.core.errors import AuthRefused, BadRequest, ContextTooLong, EmptyReply, MalformedReply, RateLimited
from hermes_agent.core.messages import (
    File,
    Image,
    Message,
    ModelRequest,
    Origin,
    Prefix,
    Role,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolSchema,
    said,
)
from hermes_agent.providers.demo.script import Answer, Call, Say, Think
from hermes_agent.providers.dialects.gemini import ANY_SIGNATURE, DIALECT
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.testing.faults import BrokenToolJson, Status
from tests.doubles.gemini_wire import GeminiStyle
from tests.doubles.model_servers import gemini_model
from tests.providers.asking import DIALECTS, PIXEL, PREFIX, result, route_to, talking

FLASH = "gemini/gemini-3.8-flash"
OLD = "gemini/gemini-2.5-flash"
SPOKEN = next(spoken for spoken in DIALECTS if spoken.name == "gemini")
ONCE = ModelSettings(max_retries=0)


def sent(model: str, messages: list[Message], prefix: Prefix = PREFIX, **changes: object):
    request = ModelRequest(
        call_id="c",
        session="s",
        run="r",
        turn=1,
        purpose="chat",
        prefix=prefix,
        messages=messages,
        effort=str(changes.get("effort", "medium")),
        use_tools=bool(changes.get("use_tools", True)),
    )
    compiler = DIALECT.compiler(route_to(model))
    compiler.take(request)
    return compiler.write(request, changes.get("max_output"))


def body(model: str, messages: list[Message], **changes: object) -> dict:
    return json.loads(sent(model, messages, **changes).body)


def wrote(*parts) -> Message:
    return Message(role=Role.ASSISTANT, parts=parts)


def spoken(model: str, *parts, after: tuple[Message, ...] = ()) -> list[dict]:
    """The parts of an assistant's message as they are sent."""
    return body(model, [said("Hi"), wrote(*parts), *(after or (said("Go on"),))])["contents"][1]["parts"]


CALL = ToolCall(id="c1", name="read_file", arguments={"path": "a"})
ANSWERED = (Message(role=Role.TOOL, parts=(result("c1", "text"),)),)
CALLED = {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}


def test_the_address_names_model_and_stream_and_the_key_is_in_googles_header():
    wire = sent(FLASH, [said("Hi")])

    assert wire.path == "/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert wire.headers["x-goog-api-key"] == "test-key"
    assert "authorization" not in wire.headers


def test_a_request_holds_instruction_tools_and_contents_in_this_order():
    plain = body(FLASH, [said("Hi")], max_output=100)

    assert list(plain) == ["systemInstruction", "tools", "contents", "generationConfig"]
    assert plain["systemInstruction"] == {"parts": [{"text": PREFIX.system}]}
    (first, _) = plain["tools"][0]["functionDeclarations"]
    assert first["parametersJsonSchema"] == PREFIX.tools[0].parameters
    assert "parameters" not in first
    assert plain["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert plain["generationConfig"]["maxOutputTokens"] == 100


def test_a_tool_without_parameters_has_none_and_nothing_empty_is_sent():
    bare = ToolSchema(name="now", description="Time.", parameters={"type": "object", "properties": {}})
    plain = body(FLASH, [said("Hi")], prefix=Prefix(system=" ", tools=(bare,), hash="0"), use_tools=False)

    assert plain["tools"] == [{"functionDeclarations": [{"name": "now", "description": "Time."}]}]
    assert plain["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert "systemInstruction" not in plain
    assert list(body(FLASH, [said("Hi")], prefix=Prefix(system="", tools=(), hash="0"))) == [
        "contents",
        "generationConfig",
    ]


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        (FLASH, "max", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        (FLASH, "none", {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("gemini/gemini-3.1-flash-lite", "minimal", {"thinkingLevel": "MINIMAL", "includeThoughts": True}),
        (OLD, "high", {"thinkingBudget": 16_384, "includeThoughts": True}),
        (OLD, "none", {"thinkingBudget": 0, "includeThoughts": False}),
        ("gemini/gemini-2.5-pro", "none", {"thinkingBudget": 512, "includeThoughts": True}),
        ("gemini/another", "high", None),
    ],
)
def test_a_level_is_a_level_or_a_budget_by_what_the_model_takes(model: str, effort: str, config: dict | None):
    assert body(model, [said("Hi")], effort=effort).get("generationConfig", {}).get("thinkingConfig") == config


def test_a_budget_leaves_room_for_words():
    limited = body(OLD, [said("Hi")], effort="high", max_output=4_000)["generationConfig"]

    assert (limited["maxOutputTokens"], limited["thinkingConfig"]["thinkingBudget"]) == (4_000, 2_000)


def test_a_signature_goes_back_onto_the_part_that_it_came_on():
    thought = Thinking(text="hm", opaque="S", maker=FLASH)

    assert spoken(FLASH, thought, CALL, after=ANSWERED) == [{**CALLED, "thoughtSignature": "S"}]
    assert spoken(FLASH, thought, Text(text="Hi")) == [{"text": "Hi", "thoughtSignature": "S"}]
    assert spoken(FLASH, Text(text="Hi"), Thinking(text="", opaque="T", maker=FLASH)) == [
        {"text": "Hi"},
        {"text": "", "thoughtSignature": "T"},
    ]
    assert spoken(FLASH, thought, Thinking(text="", opaque="T", maker=FLASH), CALL, after=ANSWERED) == [
        {"text": "hm", "thought": True, "thoughtSignature": "S"},
        {**CALLED, "thoughtSignature": "T"},
    ]
    assert spoken(FLASH, Thinking(text="hm", maker=FLASH), Text(text="Hi")) == [{"text": "Hi"}]


def test_a_call_that_another_model_made_says_so_where_a_signature_is_wanted():
    foreign = Thinking(text="hm", opaque="S", maker="gemini/gemini-3.1-pro-preview")
    second = ToolCall(id="c2", name="read_file", arguments={})
    answered = (*ANSWERED, Message(role=Role.TOOL, parts=(result("c2", "text"),)))

    first, other = spoken(FLASH, foreign, CALL, second, after=answered)
    assert first == {**CALLED, "thoughtSignature": ANY_SIGNATURE}
    assert "thoughtSignature" not in other
    assert spoken(OLD, foreign, CALL, after=ANSWERED) == [CALLED]


def test_results_are_a_content_of_their_own_before_what_was_said():
    other = ToolCall(id="c2", name="read_file", arguments={})
    answers = (result("c1", "text"), result("c2", "gone", is_error=True))
    contents = body(
        FLASH,
        [said("Hi"), wrote(CALL, other), *(Message(role=Role.TOOL, parts=(one,)) for one in answers), said("And?")],
    )["contents"]

    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert contents[2]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "text"}}},
        {"functionResponse": {"id": "c2", "name": "read_file", "response": {"error": "gone"}}},
    ]
    assert contents[3]["parts"] == [{"text": "And?"}]


def test_a_picture_in_a_result_is_in_the_response_where_the_model_takes_it_and_beside_it_otherwise():
    messages = [said("Hi"), wrote(CALL), Message(role=Role.TOOL, parts=(result("c1", "see", image=True),))]
    blob = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}

    within = body(FLASH, messages)["contents"][2:]
    assert [part["functionResponse"]["parts"] for part in within[0]["parts"]] == [[blob]]
    results, beside = body(OLD, messages)["contents"][2:]
    assert "parts" not in results["parts"][0]["functionResponse"]
    assert "read_file" in beside["parts"][0]["text"]
    assert beside["parts"][1] == blob


def test_pictures_and_documents_are_sent_and_texts_become_words():
    parts = (
        Image(url="https://example.org/a.png", origin=Origin.OWNER),
        File(name="a.pdf", media_type="application/pdf", data="cGRm"),
        File(name="a.txt", media_type="text/plain", data="aGk="),
    )
    assert body(FLASH, [Message(role=Role.USER, parts=parts)])["contents"][0]["parts"] == [
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "cGRm"}},
        {"text": "[a.txt]\nhi"},
    ]


@pytest.mark.parametrize("ids", [True, False])
async def test_signatures_survive_a_conversation_of_calls_and_go_back_unchanged(ids: bool):
    def serve(script, **more):
        return gemini_model(script, style=GeminiStyle(call_ids=ids), **more)

    script = [
        (Think("Look."), Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"})),
        (Think("Again."), Call("read_file", {"path": "c"})),
        (Think("Done."), Say("All read.")),
        Say("Bye."),
    ]
    serving = type(SPOKEN)(name="gemini", model=FLASH, serve=serve)
    async with talking(serving, script, settings=ONCE) as talk:
        for _ in range(3):
            for call in (await talk.ask()).message.tool_calls:
                talk.answer(result(call.id, call.arguments["path"]))
        talk.say("Thanks")
        assert (await talk.ask()).message.text == "Bye."
        contents = talk.server.exchanges[-1].body["contents"]

    signed = [part for content in contents for part in content["parts"] if "thoughtSignature" in part]
    assert [next(iter(part)) for part in signed] == ["functionCall", "functionCall", "text"]
    assert ANY_SIGNATURE not in str(contents)


async def test_a_call_that_is_no_json_is_asked_for_again():
    async with talking(SPOKEN, [BrokenToolJson("read_file", '{"pa')], settings=ONCE) as talk:
        with pytest.raises(MalformedReply, match=r"tool call that cannot be read .*read_file"):
            await talk.ask()


async def test_a_stop_for_length_inside_a_call_leaves_no_call():
    cut = Answer(pieces=(Say("I write."), Call("write_file", raw='{"path": "lo')), stop=StopReason.LENGTH)
    async with talking(SPOKEN, [cut]) as talk:
        reply = await talk.ask()
    assert (reply.stop, reply.message.tool_calls, reply.message.text) == (StopReason.LENGTH, (), "I write.")

    async with talking(SPOKEN, [Answer(pieces=cut.pieces[1:], stop=StopReason.LENGTH)], settings=ONCE) as talk:
        with pytest.raises(EmptyReply, match="output limit"):
            await talk.ask()


def google(code: int, message: str, status: str, *details: dict) -> Status:
    error = {"code": code, "message": message, "status": status, "details": list(details)}
    return Status(code, body=json.dumps({"error": error}).encode())


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}


@pytest.mark.parametrize(
    ("refusal", "kind", "delay"),
    [
        (google(429, "You exceeded your current quota", "RESOURCE_EXHAUSTED", RETRY), RateLimited, 7.0),
        (google(400, "API key expired.", "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"}), AuthRefused, None),
        (
            google(
                400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", "INVALID_ARGUMENT"
            ),
            ContextTooLong,
            None,
        ),
        (google(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"), BadRequest, None),
        (google(401, "Request had invalid credentials.", "UNAUTHENTICATED"), AuthRefused, None),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_a_google_error_is_read_with_its_details(refusal: Status, kind: type, delay: float | None):
    async with talking(SPOKEN, [refusal], settings=ONCE) as talk:
        with pytest.raises(kind) as caught:
            await talk.ask()
    assert type(caught.value) is kind
    assert caught.value.retry_after == delay
