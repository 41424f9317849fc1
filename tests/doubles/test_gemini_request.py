"""What the Gemini protocol lets in, judged by Google's own SDK."""

import pytest
from google.genai import errors, types

from hermes_agent.core.messages import File, Image
from hermes_agent.providers.demo.script import Call, RequestRefused, Say
from tests.doubles.gemini_request import ANY_SIGNATURE, check_json_schema, check_schema, read_gemini
from tests.doubles.model_servers import gemini_model
from tests.sdks import gemini_talk

MODEL = "gemini-3.5-flash"
SCHEMA = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}, "required": ["path"]}
READ = types.FunctionDeclaration(name="read_file", description="Read.", parameters=types.Schema(**SCHEMA))
TOOL = types.Tool(function_declarations=[READ])
HELLO = types.UserContent("hello")


def call(signature: str | None = ANY_SIGNATURE) -> types.Content:
    part = {"functionCall": {"name": "read_file", "args": {}}}
    if signature:
        part["thoughtSignature"] = signature
    return types.Content.model_validate({"role": "model", "parts": [part]})


def answer(times: int = 1) -> types.Content:
    one = {"functionResponse": {"name": "read_file", "response": {"output": "x"}}}
    return types.Content.model_validate({"role": "user", "parts": [one] * times})


async def ask(contents, config=None, model=MODEL):
    async with gemini_talk(gemini_model([Say("Yes.")])) as (server, client):
        await client.models.generate_content(model=model, contents=contents, config=config)
        return server.asked[0]


async def test_pictures_system_tools_and_limits_are_heard():
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        max_output_tokens=100,
        tools=[TOOL],
        tool_config=types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="NONE")),
        thinking_config=types.ThinkingConfig(thinking_level="LOW", include_thoughts=True),
    )
    said = ["look", types.Part.from_bytes(data=b"png", mime_type="image/png")]
    heard = await ask([*said, types.Part.from_bytes(data=b"pdf", mime_type="application/pdf")], config)

    words, picture, paper = heard.last.parts
    assert (words.text, heard.system, heard.max_output, heard.effort) == ("look", "Be brief.", 100, "low")
    assert isinstance(picture, Image)
    assert isinstance(paper, File)
    assert (picture.data, paper.media_type) == ("cG5n", "application/pdf")
    assert ([tool.name for tool in heard.tools], heard.use_tools, heard.stream) == (["read_file"], False, False)


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([types.Content(role="system", parts=[types.Part(text="x")])], "valid role"),
        ([types.Content(role="user", parts=[])], "must not be empty"),
        ([HELLO, call()], "number of function response parts is equal"),
        ([HELLO, call(), HELLO], "number of function response parts is equal"),
        ([HELLO, call(), answer(2)], "number of function response parts is equal"),
        ([HELLO, answer()], "immediately after a function call turn"),
        ([HELLO, types.ModelContent("so"), call(), answer()], "comes immediately after a user turn"),
        ([HELLO, call(None), answer()], "missing a thought_signature"),
        ([HELLO, call("Zm9yZWlnbg=="), answer()], "Corrupted thought signature"),
    ],
)
async def test_what_the_service_refuses_is_refused(contents, words):
    with pytest.raises(errors.ClientError, match=words):
        await ask(contents)


async def test_a_call_of_an_earlier_turn_or_for_an_earlier_model_needs_no_signature():
    said = [HELLO, call(None), answer()]

    assert (await ask(said, model="gemini-2.5-flash")).last.parts[0].text == "x"
    assert (await ask([*said, types.ModelContent("Done."), types.UserContent("More")])).last.text == "More"


async def test_a_signature_belongs_to_the_part_that_it_came_on():
    async with gemini_talk(gemini_model([Call("read_file", {"path": "a"}), Say("Yes.")])) as (_server, client):
        first = (await client.models.generate_content(model=MODEL, contents="hello")).candidates[0].content
        first.parts[0].function_call.args = {"path": "b"}
        with pytest.raises(errors.ClientError, match="Corrupted thought signature"):
            await client.models.generate_content(model=MODEL, contents=[HELLO, first, answer()])


async def test_budget_and_level_are_not_taken_together():
    both = types.ThinkingConfig(thinking_level="LOW", thinking_budget=100)
    with pytest.raises(errors.ClientError, match="only one of thinking budget"):
        await ask("hello", types.GenerateContentConfig(thinking_config=both))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "additionalProperties": False}, "additionalProperties"),
        ({"$ref": "#/$defs/x"}, "ref"),
        ({"type": ["string", "null"]}, "Type"),
        ({"description": "anything"}, "type: must be specified"),
        ({"type": "integer", "enum": [1, 2]}, "TYPE_STRING"),
        ({"type": "array"}, "items: missing field"),
        ({"type": "object", "properties": {"a": {"const": 1}}}, "const"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "property is not defined"),
    ],
)
def test_a_schema_outside_the_subset_is_refused(schema, words):
    with pytest.raises(RequestRefused, match=words):
        check_schema(schema, "parameters")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "must describe an object"),
        ({"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"}, "schema"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "items: missing field"),
    ],
)
def test_plain_json_schema_that_is_no_objects_is_refused(schema, words):
    with pytest.raises(RequestRefused, match=words):
        check_json_schema(schema, "parameters")


async def test_a_function_has_its_parameters_in_one_of_both_forms():
    schema = {"type": "object", "properties": {"path": {"type": ["string", "null"]}}, "additionalProperties": False}
    plain = types.FunctionDeclaration(name="read_file", description="Read.", parameters_json_schema=schema)
    heard = await ask("hello", types.GenerateContentConfig(tools=[types.Tool(function_declarations=[plain])]))
    assert heard.tools[0].parameters == schema
    both = plain.model_copy(update={"parameters": READ.parameters})
    with pytest.raises(errors.ClientError, match="mutually exclusive"):
        await ask("hello", types.GenerateContentConfig(tools=[types.Tool(function_declarations=[both])]))


@pytest.mark.parametrize(
    ("body", "words"),
    [(b"{", "Invalid JSON"), (b"{}", "contents is not specified"), (b'{"stream": true}', 'Unknown name "stream"')],
)
def test_a_body_that_is_no_request_is_refused(body, words):
    with pytest.raises(RequestRefused, match=words):
        read_gemini(body, MODEL, stream=True)
