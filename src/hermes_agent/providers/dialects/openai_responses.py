"""OpenAI Responses, also as the sign-in with ChatGPT speaks it: writing requests.

Field names follow https://platform.openai.com/docs/api-reference/responses/create.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hermes_agent.core.messages import File, Image, Part, Role, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.model import ModelRequest, Prefix
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.dialect import Dialect, Wire
from hermes_agent.providers.openai_errors import ERRORS
from hermes_agent.providers.pieces import arguments_of, data_url, json_bytes, safe_id, written
from hermes_agent.providers.replies.openai_responses import KeptItem, ResponsesDecoder, kept_item
from hermes_agent.providers.route import Route
from hermes_agent.providers.verifier import Turn

LEAST_OUTPUT = 16  # the API refuses a smaller limit
# A reasoning item goes back without its name: nothing is kept there under it, and a name binds it to its neighbours.
UNSENT = frozenset({"id", "status"})


class ResponsesCompiler(ConversationCompiler):
    """Writes Responses requests.

    Usually a request holds the whole conversation, with the model's encrypted reasoning, and nothing is kept by the
    provider. Where the route chains, the last response is named and only what came after it is sent, as long as what
    was sent for that response is how the conversation still begins; otherwise everything is sent.
    """

    def __init__(self, route: Route) -> None:
        super().__init__(route)
        self._sent: list[bytes] = []  # the turns as of the last request
        self._basis: tuple[str, list[bytes]] = ("", [])  # a response, and the turns that it answered
        self._previous: tuple[str, int] = ("", 0)  # the response to name, and the turns that need not be sent

    def write(self, request: ModelRequest, max_output: int | None) -> Wire:
        self._previous = self._chained() if self._route.vendor.quirks.chains else ("", 0)
        wire = super().write(request, max_output)
        self._sent = self._fragments
        return wire

    def _shown(self, fragments: list[bytes]) -> list[bytes]:
        return fragments[self._previous[1] :]

    def _path(self) -> str:
        return "/responses"

    def _head(self, prefix: Prefix) -> bytes:
        head: dict[str, Any] = {"model": self._route.model}
        instructions = prefix.system if prefix.system.strip() else self._route.vendor.quirks.instructions
        if instructions:
            head["instructions"] = instructions
        if self.has_tools(prefix):
            head["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in prefix.tools
            ]
        return json_bytes(head)[:-1] + b',"input":['

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        quirks = self._route.vendor.quirks
        has_tools = self.has_tools(request.prefix)
        tail: dict[str, Any] = {"stream": True, **quirks.also, "store": quirks.chains}
        if self._previous[0]:
            tail["previous_response_id"] = self._previous[0]
        if has_tools and not request.use_tools:
            tail["tool_choice"] = "none"
        if max_output is not None and quirks.output_limit:
            tail["max_output_tokens"] = max(LEAST_OUTPUT, max_output)
        level = self._route.effort(request.effort, tools=has_tools)
        if level is not None:
            tail["reasoning"] = {"effort": level, "summary": "auto"}
            tail["include"] = ["reasoning.encrypted_content"]
        if quirks.cache_key and request.session:
            tail["prompt_cache_key"] = request.session
        return tail

    def _turn(self, turn: Turn) -> bytes:
        """Every turn has at least one item: an assistant's whose thinking cannot go back says nothing."""
        items = list(_said(turn.parts) if turn.role is Role.ASSISTANT else _heard(turn))
        return b",".join(json_bytes(item) for item in items)

    def _chained(self) -> tuple[str, int]:
        """The response to go on from and how many turns it covers; ("", 0): none."""
        turns = self.turns
        place = next((place for place in range(len(turns) - 1, 0, -1) if turns[place].role is Role.ASSISTANT), 0)
        name = _response(turns[place].parts) if place else ""
        if name and name != self._basis[0]:
            self._basis = (name, self._sent)
        if not name or self._basis[1] != self._fragments[:place]:
            return "", 0
        return name, place + 1


def _response(parts: list[Part]) -> str:
    """The name of the one response that a turn is; empty where it is none, or several."""
    kept = [kept_item(part.opaque) for part in parts if isinstance(part, Thinking)]
    names = [item.response for item in kept if item.response]
    return names[0] if len(names) == 1 else ""


def _said(parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
    phase = ""  # of the next words
    for part in parts:
        match part:
            case Thinking():
                phase = kept_item(part.opaque).phase
                yield from _reasoning(part)
            case Text():
                content = [{"type": "output_text", "text": part.text}]
                named = {"phase": phase} if phase else {}
                yield {"type": "message", "role": "assistant", **named, "content": content}
                phase = ""
            case ToolCall():
                yield {
                    "type": "function_call",
                    "call_id": safe_id(part.id),
                    "name": part.name,
                    "arguments": json_bytes(arguments_of(part)).decode(),
                }
            case _:
                continue


def _reasoning(thought: Thinking) -> Iterator[dict[str, Any]]:
    """The reasoning item as it came, where this dialect kept one."""
    if kept_item(thought.opaque).type == KeptItem.REASONING:
        item: dict[str, Any] = msgspec.json.decode(thought.opaque)
        yield {name: value for name, value in item.items() if name not in UNSENT}


def _heard(turn: Turn) -> Iterator[dict[str, Any]]:
    for result in turn.results:
        yield {"type": "function_call_output", "call_id": safe_id(result.call_id), "output": _output(result)}
    content = [block for part in turn.parts for block in _blocks(part)]
    if content or not turn.results:
        yield {"type": "message", "role": "user", "content": content}


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    """Words alone as one text, otherwise a list; the protocol has no mark for a failure."""
    content = [block for part in result.parts for block in _blocks(part)]
    words = "\n\n".join(block["text"] for block in content if block["type"] == "input_text")
    if result.is_error and not words.startswith(("{", "Error")):
        content.insert(0, {"type": "input_text", "text": "Error:" if words else "Error"})
        words = f"Error: {words}" if words else "Error"
    return words if all(block["type"] == "input_text" for block in content) else content


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case Text():
            yield {"type": "input_text", "text": part.text}
        case Image():
            yield {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
        case File():
            words = written(part)
            if words is None:
                yield {"type": "input_file", "filename": part.name, "file_data": data_url(part)}
            else:
                yield {"type": "input_text", "text": words}
        case _:
            return


DIALECT = Dialect(errors=ERRORS, compiler=ResponsesCompiler, reader=ResponsesDecoder)
