"""Makes the SDK's MCP server of an offer: tools are ours, with what they answer and ask. Needs the extra `mcp`."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import Any, Protocol

import mcp_types as types
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes_agent.core.effects import Effect, Location
from hermes_agent.core.errors import HermesError, Refused
from hermes_agent.core.forms import Field
from hermes_agent.core.messages import File, Image, Text, Trust
from hermes_agent.core.tool import Question, RunlessCall, Tool
from hermes_agent.host.tasks import spawn
from hermes_agent.version import VERSION

APOLOGY = "Something in Hermes broke; logs/hermes.log has the details."
KINDS = {"text": "string", "number": "number", "integer": "integer", "boolean": "boolean", "choice": "string"}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
NOT_FOUND = -32002
"""The older protocol's code for a resource that is not there."""
Part = Text | Image | File
log = logging.getLogger(__name__)


class Offer(Protocol):
    """What one principal is offered. All but the lists raise `HermesError` for what is not theirs."""

    instructions: str
    templates: Sequence[types.ResourceTemplate]

    def tools(self) -> Mapping[str, Tool]: ...

    async def resources(self) -> Sequence[types.Resource]: ...

    async def read(self, uri: str) -> Sequence[types.TextResourceContents | types.BlobResourceContents]: ...

    async def prompts(self) -> Sequence[types.Prompt]: ...

    async def prompt(self, params: types.GetPromptRequestParams) -> Sequence[types.ContentBlock]: ...


class InputNeeded(Exception):
    """A call in the newer protocol needs answers of the client's person: it is made again with them."""

    def __init__(self, requests: types.InputRequests, state: str | None = None) -> None:
        super().__init__(", ".join(requests))
        self.result = types.InputRequiredResult(input_requests=requests, request_state=state)


class Call(RunlessCall):
    """The `CallContext` of a tool that a client calls. `request` and `params` are the SDK's."""

    session = run = workspace = speaker = ""
    speakers: Set[str] = frozenset()
    attach, trust = False, Trust.OUTSIDE
    begun_at = Location()

    def __init__(self, request: ServerRequestContext, params: types.CallToolRequestParams) -> None:
        self.request, self.params = request, params
        self.key = f"mcp-{request.request_id}"
        self._shown: list[asyncio.Task[None]] = []
        self._asked = 0

    def progress(self, text: str) -> None:
        """Show a line to the client, if it wants progress."""
        number = len(self._shown) + 1
        self._shown.append(spawn(self.request.session.report_progress(number, None, text), name="progress for MCP"))

    async def shown(self) -> None:
        """Wait until all lines are sent: the answer ends them."""
        if self._shown:
            await asyncio.wait(self._shown)

    async def ask(self, question: Question) -> str:
        """Ask the client's person by a form; empty where they declined. Raises `Refused` for a client without forms."""
        self._asked += 1
        form = types.ElicitRequestFormParams(message=question.text, requested_schema=schema_of(question))
        abilities = self.request.session.client_capabilities
        if abilities is None or abilities.elicitation is None:
            raise Refused("The client cannot ask its person.")
        if self.request.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            here = self.request.request_id  # Else it waits for a stream of its own, which a client may not have yet.
            found = await self.request.session.elicit_form(form.message, form.requested_schema, here)
        elif (key := f"question_{self._asked}") in self._answers:
            found = types.ElicitResult.model_validate(self._answers[key])
        else:
            raise InputNeeded({key: types.ElicitRequest(params=form)}, json.dumps(self._answers))
        if found.action != "accept":
            return ""
        content = dict(found.content or {})
        return json.dumps(content) if question.fields else str(content.get("answer", ""))

    @cached_property
    def _answers(self) -> dict[str, Any]:
        """What the client's person said so far: the call is made anew with each answer, and carries those before. All
        of it is the client's own word."""
        try:
            before = json.loads(self.params.request_state or "{}")
        except ValueError:
            before = {}
        given = self.params.input_responses or {}
        news = {name: each.model_dump(mode="json") for name, each in given.items()}
        return {**(before if isinstance(before, dict) else {}), **news}


def schema_of(question: Question) -> dict[str, Any]:
    """The form of a question; without fields it asks for one `answer`."""
    fields = question.fields or (
        Field(name="answer", type="choice" if question.choices else "text", choices=question.choices, required=True),
    )
    required = [each.name for each in fields if each.required]
    return {"type": "object", "properties": {each.name: _property(each) for each in fields}, "required": required}


def _property(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"title": field.title} if field.title else {}
    titled = [{"const": value, "title": label} for value, label in zip(field.choices, field.labels, strict=False)]
    if field.type == "choices":
        found |= {"type": "array", "items": {"anyOf": titled} if titled else {"type": "string", "enum": field.choices}}
    else:
        found["type"] = KINDS[field.type]
        if field.choices:
            found |= {"oneOf": titled} if titled else {"enum": list(field.choices)}
    return found | ({"default": json.loads(field.default)} if field.default else {})


def server_of(offer: Offer) -> Server[Any]:
    """The server for one principal, in both generations of the protocol."""
    handlers = _Handlers(offer)
    return Server(
        "hermes",
        version=VERSION,
        title="Hermes",
        instructions=offer.instructions,
        cache_hints={each: CacheHint() for each in LISTS},  # type: ignore[misc]  # a literal of these
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class _Handlers:
    """The requests of clients, answered from an offer; the protocol is the SDK's."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer

    async def list_tools(self, *_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in self._offer.tools().values()])

    async def call_tool(
        self, request: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tool = self._offer.tools().get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:80]!r} for you here.")
        call = Call(request, params)
        try:
            answer = await tool.run(params.arguments or {}, call)
            content, is_error = [block_of(part) for part in answer.parts], answer.is_error
        except InputNeeded as needed:
            return needed.result
        except MCPError:
            raise
        except HermesError as error:
            content, is_error = [types.TextContent(text=str(error))], True
        except Exception:  # Boundary: one tool call.
            log.exception("a call over MCP failed: %s", params.name)
            content, is_error = [types.TextContent(text=APOLOGY)], True
        finally:
            await call.shown()
        return types.CallToolResult(content=content, is_error=is_error)

    async def list_resources(self, *_: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=list(await self._offer.resources()))

    async def list_templates(self, *_: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(self._offer.templates))

    async def read_resource(
        self, request: ServerRequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            return types.ReadResourceResult(contents=list(await self._offer.read(uri)))
        except HermesError as error:
            is_newer = request.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = types.INVALID_PARAMS if is_newer else NOT_FOUND
            raise MCPError(code, str(error), {"uri": uri}) from error

    async def list_prompts(self, *_: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(await self._offer.prompts()))

    async def get_prompt(
        self, _: ServerRequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        try:
            blocks = await self._offer.prompt(params)
        except InputNeeded as needed:
            return needed.result
        except HermesError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=each) for each in blocks])


def _listed(tool: Tool) -> types.Tool:
    schema = tool.schema
    reads = getattr(getattr(tool, "mark", None), "effect", None) is Effect.READS
    hints = types.ToolAnnotations(read_only_hint=True) if reads else None
    parameters = dict(schema.parameters)
    return types.Tool(name=schema.name, description=schema.description, input_schema=parameters, annotations=hints)


def block_of(part: Part) -> types.ContentBlock:
    """A part of an answer as content of the protocol."""
    match part:
        case Text(text=text):
            return types.TextContent(text=text)
        case Image(url=url, media_type=kind, data=data):
            return types.ImageContent(data=data, mime_type=kind) if data else types.TextContent(text=url)
        case File(media_type=kind, data=data) if kind.startswith("audio/"):
            return types.AudioContent(data=data, mime_type=kind)
        case File(name=name, media_type=kind, data=data):
            return types.EmbeddedResource(resource=contents_of(f"file:///{name}", kind, data))


def contents_of(uri: str, kind: str, data: str) -> types.TextResourceContents | types.BlobResourceContents:
    """The contents of a file by its bytes in base64: as text, where they are one."""
    if kind.startswith("text/") or kind == "application/json":
        text = base64.b64decode(data).decode("utf-8", "replace")
        return types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.BlobResourceContents(uri=uri, mime_type=kind, blob=data)
