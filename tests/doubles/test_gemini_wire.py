"""The Gemini protocol as a whole, judged by Google's own SDK."""

import pytest
from google.genai import errors, types

from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.providers.demo.script import Answer, Call, Say, Think
from hermes_agent.testing.faults import BrokenToolJson, ErrorEvent, Status
from tests.doubles.gemini_wire import GeminiStyle
from tests.doubles.model_servers import gemini_model
from tests.sdks import gemini_talk

MODEL = "gemini-3.5-flash"
SCHEMA = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}, "required": ["path"]}
READ = types.FunctionDeclaration(name="read_file", description="Read.", parameters=types.Schema(**SCHEMA))
TOOLS = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[READ])])
LOOK = (Think("Let me look."), Say("Reading."), Call("read_file", {"path": "ä"}), Call("read_file", {"path": "b"}))


async def whole(client, contents="hello", config=None):
    return await client.models.generate_content(model=MODEL, contents=contents, config=config)


async def streamed(client, contents="hello", config=None):
    return [
        chunk
        async for chunk in await client.models.generate_content_stream(model=MODEL, contents=contents, config=config)
    ]


def parts(chunks):
    return [
        part
        for chunk in chunks
        for candidate in chunk.candidates
        if candidate.content
        for part in candidate.content.parts or ()
    ]


async def test_the_sdk_reads_a_whole_reply():
    async with gemini_talk(gemini_model([Say("Good morning.")])) as (_server, client):
        reply = await whole(client)

    assert (reply.text, reply.candidates[0].finish_reason, reply.model_version) == ("Good morning.", "STOP", MODEL)


async def test_the_sdk_reads_a_stream_of_thinking_words_and_parallel_calls():
    async with gemini_talk(gemini_model([LOOK])) as (_server, client):
        chunks = await streamed(client, config=TOOLS)

    said = parts(chunks)
    calls = [part for part in said if part.function_call]
    assert "".join(part.text for part in said if part.thought) == "Let me look."
    assert "".join(part.text for part in said if part.text and not part.thought) == "Reading."
    assert [(part.function_call.name, part.function_call.args) for part in calls] == [
        ("read_file", {"path": "ä"}),
        ("read_file", {"path": "b"}),
    ]
    assert [bool(part.thought_signature) for part in calls] == [True, False]
    assert chunks[-1].candidates[0].finish_reason == "STOP"


@pytest.mark.parametrize("ids", [True, False])
async def test_the_sdk_makes_a_tool_round_trip_with_its_signatures(ids: bool):
    model = gemini_model([LOOK, Say("They say hello.")], style=GeminiStyle(call_ids=ids))
    async with gemini_talk(model) as (server, client):
        first = (await whole(client, config=TOOLS)).candidates[0].content
        calls = [part.function_call for part in first.parts if part.function_call]
        answers = [
            types.Part(
                function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "hello"})
            )
            for call in calls
        ]
        said = [types.UserContent("hello"), first, types.Content(role="user", parts=answers)]
        second = await whole(client, said, TOOLS)

    assert second.text == "They say hello."
    assert [bool(call.id) for call in calls] == [ids, ids]
    assert server.asked[1].last.parts[0].text == "hello"


async def test_a_picture_in_a_function_response_is_heard():
    blob = types.FunctionResponseBlob(mime_type="image/png", data=b"png")
    answer = types.FunctionResponse(
        name="read_file", response={"output": "see"}, parts=[types.FunctionResponsePart(inline_data=blob)]
    )
    async with gemini_talk(gemini_model([Call("read_file", {"path": "a"}), Say("A pixel.")])) as (server, client):
        first = (await whole(client, config=TOOLS)).candidates[0].content
        said = [
            types.UserContent("hello"),
            first,
            types.Content(role="user", parts=[types.Part(function_response=answer)]),
        ]
        await whole(client, said, TOOLS)

    assert [part.kind for part in server.asked[1].last.parts[0].parts] == ["text", "image"]


async def test_usage_keeps_thoughts_beside_the_words():
    usage = Usage(input=1000, output=70, cached=600, reasoning=50)
    async with gemini_talk(gemini_model(lambda _: Answer(pieces=(Say("Yes."),), usage=usage))) as (_server, client):
        chunks = await streamed(client)
        told = [chunks[-1].usage_metadata, (await whole(client)).usage_metadata]

    for one in told:
        assert (one.prompt_token_count, one.cached_content_token_count) == (1000, 600)
        assert (one.candidates_token_count, one.thoughts_token_count, one.total_token_count) == (20, 50, 1070)
    assert chunks[0].usage_metadata.thoughts_token_count is None


async def test_a_longer_prompt_finds_the_shorter_one_in_the_cache():
    async with gemini_talk(gemini_model(lambda _: Say("Yes."))) as (_server, client):
        await whole(client, "word " * 300)
        again = await whole(client, [types.UserContent("word " * 300), types.ModelContent("Yes."), "More"])

    assert again.usage_metadata.cached_content_token_count > 200


@pytest.mark.parametrize(
    ("reason", "word"),
    [(StopReason.LENGTH, "MAX_TOKENS"), (StopReason.REFUSED, "SAFETY"), (StopReason.OTHER, "OTHER"), (None, "STOP")],
)
async def test_the_finish_reason_is_told_in_the_services_words(reason, word):
    async with gemini_talk(gemini_model([Answer(pieces=(Say("Yes"),), stop=reason)])) as (_server, client):
        assert (await whole(client)).candidates[0].finish_reason == word


async def test_a_call_without_an_object_is_a_finish_reason():
    async with gemini_talk(gemini_model([BrokenToolJson("read_file", '{"pa')])) as (_server, client):
        candidate = (await streamed(client, config=TOOLS))[-1].candidates[0]

    assert candidate.finish_reason == "MALFORMED_FUNCTION_CALL"
    assert candidate.content is None


async def test_a_wrong_key_is_an_invalid_argument():
    async with gemini_talk(gemini_model([Say("Yes.")]), "wrong") as (_server, client):
        with pytest.raises(errors.ClientError, match="API key not valid") as caught:
            await whole(client)

    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    assert caught.value.details["error"]["details"][0]["reason"] == "API_KEY_INVALID"


async def test_an_unknown_model_is_not_found():
    async with gemini_talk(gemini_model([Say("Yes.")], models=("other",))) as (_server, client):
        with pytest.raises(errors.ClientError, match=f"models/{MODEL} is not found"):
            await whole(client)
        names = [model.name async for model in await client.models.list()]

    assert names == ["models/other"]


@pytest.mark.parametrize(
    ("status", "told", "word"),
    [(429, 429, "RESOURCE_EXHAUSTED"), (500, 500, "INTERNAL"), (503, 503, "UNAVAILABLE"), (529, 503, "UNAVAILABLE")],
)
async def test_a_status_is_the_sdks_error(status, told, word):
    async with gemini_talk(gemini_model([Status(status, "slowly")])) as (_server, client):
        with pytest.raises(errors.APIError, match="slowly") as caught:
            await streamed(client)

    assert (caught.value.code, caught.value.status) == (status, word)
    assert caught.value.details["error"]["code"] == told


async def test_an_error_in_a_stream_reaches_the_sdk():
    async with gemini_talk(gemini_model([ErrorEvent(after=1)])) as (_server, client):
        with pytest.raises(errors.APIError, match="Overloaded"):
            await streamed(client)
