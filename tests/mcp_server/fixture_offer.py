"""What the official conformance suite expects of a server: its tools as tools of ours, its resources and prompts. As a
program it serves them on loopback, and prints the address."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

from hermes_agent.app.tool_sources import FixedTools
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.forms import Field
from hermes_agent.core.messages import File, Image, Text, ToolSchema
from hermes_agent.core.tool import Answer, CallContext, Question, Tool, tool
from hermes_agent.host.inbound.listener import Routes, listen
from hermes_agent.host.inbound.message import Policy, Request, Response, check_names
from hermes_agent.mcp_server.adapter import Call, InputNeeded, block_of, schema_of
from hermes_agent.mcp_server.http import McpEndpoint

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NAME = types.ElicitRequest(
    params=types.ElicitRequestFormParams(
        message="What is your name?",
        requested_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    )
)
ROOTS = types.ListRootsRequest()
ENUMS = (
    Field(name="untitledSingle", type="choice", choices=("option1", "option2", "option3")),
    Field(name="titledSingle", type="choice", choices=("v1", "v2"), labels=("First", "Second")),
    Field(name="untitledMulti", type="choices", choices=("option1", "option2")),
    Field(name="titledMulti", type="choices", choices=("v1", "v2"), labels=("First", "Second")),
)


def sampling(words: str) -> types.CreateMessageRequest:
    said = types.SamplingMessage(role="user", content=types.TextContent(text=words))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[said], max_tokens=100))


def text_file(name: str, kind: str, text: str) -> File:
    return File(name=name, media_type=kind, data=base64.b64encode(text.encode()).decode())


class Fixtures:
    """The suite's tools by their names."""

    @tool(effect=Effect.READS)
    async def test_simple_text(self) -> str:
        """Answer a text."""
        return "This is a simple text response for testing."

    @tool(effect=Effect.READS)
    async def test_image_content(self) -> Answer:
        """Answer a picture."""
        return Answer(parts=(Image(media_type="image/png", data=IMAGE),))

    @tool(effect=Effect.READS)
    async def test_audio_content(self) -> Answer:
        """Answer a sound."""
        return Answer(parts=(File(name="a.wav", media_type="audio/wav", data=SOUND),))

    @tool(effect=Effect.READS)
    async def test_embedded_resource(self) -> Answer:
        """Answer a file."""
        return Answer(parts=(text_file("a.txt", "text/plain", "This is an embedded resource content."),))

    @tool(effect=Effect.READS)
    async def test_multiple_content_types(self) -> Answer:
        """Answer all three."""
        data = text_file("a.json", "application/json", '{"test": "data", "value": 123}')
        return Answer(parts=(Text(text="Multiple content types test:"), Image(data=IMAGE), data))

    @tool(effect=Effect.READS)
    async def test_tool_with_logging(self, context: Call) -> str:
        """Log three lines."""
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.request.session.send_log_message("info", line, None, context.request.request_id)
        return "done"

    @tool(effect=Effect.READS)
    async def test_logging_tool(self, context: Call) -> str:
        """The same."""
        return await self.test_tool_with_logging(context)

    @tool(effect=Effect.READS)
    async def test_tool_with_progress(self, context: CallContext) -> str:
        """Show three lines."""
        for line in ("0", "50", "100"):
            context.progress(line)
        return "done"

    @tool(effect=Effect.READS)
    async def test_error_handling(self) -> str:
        """Fail."""
        raise ToolError("This tool intentionally returns an error for testing")

    @tool(effect=Effect.READS)
    async def test_sampling(self, prompt: str, context: Call) -> str:
        """Ask the client's model."""
        said = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
        found = await context.request.session.create_message(
            messages=[said], max_tokens=100, related_request_id=context.request.request_id
        )
        return f"LLM response: {found.content.text}"

    @tool(effect=Effect.READS)
    async def test_elicitation(self, message: str, context: CallContext) -> str:
        """Ask the client's person."""
        fields = (Field(name="response", type="text", required=True),)
        return f"User response: {await context.ask(Question(text=message, fields=fields))}"

    @tool(effect=Effect.READS)
    async def test_elicitation_sep1034_defaults(self, context: CallContext) -> str:
        """Ask with defaults."""
        states = ("active", "inactive", "pending")
        fields = (
            Field(name="name", default='"John Doe"'),
            Field(name="age", type="integer", default="30"),
            Field(name="score", type="number", default="95.5"),
            Field(name="status", type="choice", choices=states, default='"active"'),
            Field(name="verified", type="boolean", default="true"),
        )
        return await context.ask(Question(text="Who are you?", fields=fields))

    @tool(effect=Effect.READS)
    async def test_elicitation_sep1330_enums(self, context: Call) -> str:
        """Ask with all kinds of choices; the oldest kind is none of ours."""
        schema = schema_of(Question(text="", fields=ENUMS))
        old = {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]}
        schema["properties"]["legacyEnum"] = old
        found = await context.request.session.elicit_form("Choose.", schema, context.request.request_id)
        return json.dumps(found.content)

    @tool(effect=Effect.READS)
    async def test_input_required_result_elicitation(self, context: Call) -> str:
        """Need a name."""
        return f"Hello, {needed(context, user_name=NAME)['user_name'].content['name']}!"

    @tool(effect=Effect.READS)
    async def test_input_required_result_sampling(self, context: Call) -> str:
        """Need a model."""
        asked = sampling("What is the capital of France?")
        return str(needed(context, capital_question=asked)["capital_question"].content)

    @tool(effect=Effect.READS)
    async def test_input_required_result_list_roots(self, context: Call) -> str:
        """Need roots."""
        return str(needed(context, client_roots=ROOTS)["client_roots"].roots)

    @tool(effect=Effect.READS)
    async def test_input_required_result_request_state(self, context: Call) -> str:
        """Need a name, and the state back."""
        needed(context, "state", confirm=NAME)
        return "state-ok" if context.params.request_state == "state" else "state-wrong"

    @tool(effect=Effect.READS)
    async def test_input_required_result_tampered_state(self, context: Call) -> str:
        """The same."""
        needed(context, "state", confirm=NAME)
        return "state-ok"

    @tool(effect=Effect.READS)
    async def test_input_required_result_multiple_inputs(self, context: Call) -> str:
        """Need three things."""
        needed(context, "state", user_name=NAME, greeting=sampling("Generate a greeting"), client_roots=ROOTS)
        return "thanks"

    @tool(effect=Effect.READS)
    async def test_input_required_result_multi_round(self, context: Call) -> str:
        """Need one thing after the other."""
        state = context.params.request_state
        if not state:
            raise InputNeeded({"step1": NAME}, "1")
        if state == "1":
            raise InputNeeded({"step2": NAME}, "2")
        return "thanks"

    @tool(effect=Effect.READS)
    async def test_input_required_result_capabilities(self, context: Call) -> str:
        """Need what the client can do."""
        able = context.request.session.client_capabilities
        asked: dict[str, Any] = {"a": NAME} if able and able.elicitation else {}
        asked |= {"b": sampling("Hi")} if able and able.sampling else {}
        needed(context, **asked)
        return "thanks"

    @tool(effect=Effect.READS)
    async def test_missing_capability(self, context: Call) -> str:
        """Need sampling."""
        able = context.request.session.client_capabilities
        if able is None or able.sampling is None:
            missing = types.ClientCapabilities(sampling=types.SamplingCapability())
            raise MCPError(
                types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                "This needs sampling.",
                {"requiredCapabilities": missing.model_dump(by_alias=True, exclude_none=True)},
            )
        return "thanks"

    @tool(effect=Effect.READS)
    async def test_streaming_elicitation(self, context: CallContext) -> str:
        """Show a line, then ask."""
        context.progress("first")
        return await context.ask(Question(text="Go on?", choices=("yes", "no")))


def needed(context: Call, state: str | None = None, /, **asked: types.InputRequest) -> Mapping[str, Any]:
    """The client's answers to all of these; asks for those that are missing."""
    given = context.params.input_responses or {}
    if missing := {name: request for name, request in asked.items() if name not in given}:
        raise InputNeeded(missing, state)
    return given


class Shaped:
    """A tool whose parameters use what JSON Schema can say."""

    needs = frozenset[Capability]()

    def __init__(self, name: str, **parameters: object) -> None:
        self.schema = ToolSchema(name=name, description="Its parameters come back.", parameters=parameters)

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        return Answer(parts=(Text(text=json.dumps(arguments)),))


STREET = {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
SHAPED = (
    Shaped(
        "json_schema_2020_12_tool",
        **{"$schema": "https://json-schema.org/draft/2020-12/schema"},
        type="object",
        **{"$defs": {"address": {"$anchor": "addressDef", **STREET}}},
        properties={
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        allOf=[{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        **{"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]}},
        then={"required": ["phone"]},
        **{"else": {"required": ["email"]}},
        additionalProperties=False,
    ),
    Shaped(
        "test_header",
        type="object",
        properties={"region": {"type": "string", "x-mcp-header": "Region"}},
        required=["region"],
    ),
)
RESOURCES: Mapping[str, tuple[str, str]] = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", IMAGE),
    "test://watched-resource": ("text/plain", "Watched"),
}
PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


class FixtureOffer:
    """Implements `Offer`."""

    instructions = "For conformance."
    templates = (types.ResourceTemplate(name="t", uri_template="test://template/{id}/data", mime_type="text/plain"),)

    def tools(self) -> Mapping[str, Tool]:
        return {each.schema.name: each for each in FixedTools([Fixtures(), *SHAPED]).tools("", ())}

    async def resources(self) -> Sequence[types.Resource]:
        return [types.Resource(name=uri, uri=uri, mime_type=kind) for uri, (kind, _) in RESOURCES.items()]

    async def read(self, uri: str) -> Sequence[types.TextResourceContents | types.BlobResourceContents]:
        if uri.startswith("test://template/"):
            text = json.dumps({"id": uri.split("/")[3], "templateTest": True})
            return [types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
        if uri not in RESOURCES:
            raise HermesError("There is nothing.")
        kind, content = RESOURCES[uri]
        if kind == "image/png":
            return [types.BlobResourceContents(uri=uri, mime_type=kind, blob=content)]
        return [types.TextResourceContents(uri=uri, mime_type=kind, text=content)]

    async def prompts(self) -> Sequence[types.Prompt]:
        return [
            types.Prompt(
                name=name,
                description="For conformance.",
                arguments=[types.PromptArgument(name=each, required=True) for each in needs],
            )
            for name, needs in PROMPTS.items()
        ]

    async def prompt(self, params: types.GetPromptRequestParams) -> Sequence[types.ContentBlock]:
        given = params.arguments or {}
        match params.name:
            case "test_simple_prompt":
                return [types.TextContent(text="This is a simple prompt for testing.")]
            case "test_prompt_with_arguments":
                words = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
                return [types.TextContent(text=words)]
            case "test_prompt_with_embedded_resource":
                found = types.TextResourceContents(uri=given["resourceUri"], mime_type="text/plain", text="Embedded")
                return [types.EmbeddedResource(resource=found), types.TextContent(text="Please process it.")]
            case "test_prompt_with_image":
                return [block_of(Image(data=IMAGE)), types.TextContent(text="Please analyze it.")]
            case "test_input_required_result_prompt":
                if "user_context" not in (params.input_responses or {}):
                    raise InputNeeded({"user_context": NAME})
                return [types.TextContent(text=str((params.input_responses or {})["user_context"]))]
            case _:
                raise HermesError("There is no such prompt.")


class FixtureEndpoint(McpEndpoint):
    """The address with the suite's offer, and what of the protocol the suite wants and Hermes has no use for."""

    def server(self, who: Principal) -> Server[Any]:
        server = super().server(who)
        server.middleware.append(RequestStateBoundary(RequestStateSecurity(keys=["k" * 32]), default_audience="test"))

        async def nothing(*_: object) -> types.EmptyResult:
            return types.EmptyResult()

        async def complete(*_: object) -> types.CompleteResult:
            return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))

        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, nothing)
        server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, nothing)
        server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, nothing)
        server.add_request_handler("completion/complete", types.CompleteRequestParams, complete)
        return server


async def main() -> None:
    who = Principal(platform="api", user="owner", standing=Standing.OWNER)
    endpoint = FixtureEndpoint(lambda _: FixtureOffer(), asyncio.Event())
    routes = Routes()

    async def answer(request: Request) -> Response:
        return await endpoint(request, who, 1_000_000)

    async def guarded(request: Request) -> Response:
        check_names(request, ())
        return await routes(request)

    for method in ("GET", "POST", "DELETE"):
        routes.mount("/mcp", method, answer)
    async with listen(guarded, policy=Policy()) as place:
        print(f"{place.url}/mcp", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
