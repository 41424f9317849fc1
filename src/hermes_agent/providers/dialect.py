"""Base types of API dialects: the record of a dialect, the compiler of requests, the decoder of server-sent events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import MalformedReply
from hermes_agent.core.messages import Message, ModelRequest, Part, Prefix, Role, Thinking
from hermes_agent.providers.catalog import ModelFacts
from hermes_agent.providers.outcomes import NO_NAMES, Framing, Names, Table, Taken, Wire
from hermes_agent.providers.reading import BYTES_PER_TOKEN, ReplyReader, estimate, json_bytes
from hermes_agent.providers.route import Route, output_limit
from hermes_agent.providers.tool_schemas import PLAIN, SetAside, ToolRules, fitted, wire_name
from hermes_agent.providers.vendor import Level
from hermes_agent.providers.verifier import ANY_PICTURE, PictureRules, Sight, Transcript, Turn

LEAST_ROOM = 1_024


class ConversationCompiler(ABC):
    """Compiles the requests of one conversation on one route into one JSON object: `_head`, the turns, `_tail`.
    Compiled messages are cached, and `_head` is byte-identical in all requests with the same prefix.

    A dialect fills in:

    - `_head`: the object up to the `[` of its list of messages, made once for each prefix;
    - `_turn`: one verified turn as the entries of that list, without a comma at either end;
    - `_tail`: the fields that follow the list, which may differ from request to request;
    - `_path` and `_headers`: where the request goes and with which credentials.

    `_shown` may mark turns that are already written, or leave some out. `rules` and `pictures` say which tools
    and pictures the dialect accepts: `_head` and `_turn` see only those. `names` maps sent names of tools to
    their real ones, `aside` are the tools that cannot be sent. Where `_prefill` is True the last turn is the
    beginning of the reply; only a route whose `prefills` is True gets such a request.
    """

    rules: ClassVar[ToolRules] = PLAIN
    pictures: ClassVar[PictureRules] = ANY_PICTURE

    def __init__(self, route: Route) -> None:
        self._route = route
        sight = Sight(images=route.facts.images, files=route.facts.files, rules=self.pictures)
        self._transcript = Transcript(maker=route.name, sight=sight, rules=self.rules)
        self._encoded: list[bytes] = []
        self._sizes: list[int] = []
        self._some_fit = True
        self.names: Mapping[str, str] = NO_NAMES
        self.aside: Sequence[SetAside] = ()
        self._prefix: Prefix | None = None
        self._begun = b""
        self._fragments: list[bytes] = []
        self._prefill = False
        self.tokens = 0

    @property
    def call_ids(self) -> Taken:
        """The ids of all calls in the messages."""
        return self._transcript.call_ids

    @property
    def turns(self) -> list[Turn]:
        """The verified turns, without the extra ending of a request."""
        return self._transcript.turns

    def forget(self) -> None:
        """Stop sending earlier thinking: the provider refused it."""
        self._transcript.forget()

    def take(self, request: ModelRequest) -> None:
        """Compile the new messages of a request; `tokens` is then the size of prefix and messages by bytes / 4."""
        if self._prefix is not request.prefix:
            self._begun = self._head(self._fitted(request.prefix))
            self._prefix = request.prefix
        self._fragments, tokens = self._follow(request.messages, prefill=request.prefill)
        self._prefill = request.prefill
        self.tokens = tokens + len(self._begun) // BYTES_PER_TOKEN

    def write(self, request: ModelRequest, max_output: int | None) -> Wire:
        """The encoded request that was taken last."""
        fields = json_bytes(self._tail(request, max_output))[1:]
        end = b"]" + fields if fields == b"}" else b"]," + fields
        body = joined(self._begun, self._shown(self._fragments), end)
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            **self._headers(body),
            **dict(self._route.vendor.headers),
        }
        return Wire(path=self._path(), headers=headers, body=body)

    def longest(self, max_output: int | None) -> int:
        """The reply limit in tokens where one is required: at most what the window has left."""
        return min(max(LEAST_ROOM, self._route.facts.window - self.tokens), output_limit(self._route, max_output))

    def has_tools(self, prefix: Prefix) -> bool:
        """Whether requests with this prefix offer tools."""
        return self._some_fit and bool(prefix.tools) and self._route.facts.tools

    def _fitted(self, prefix: Prefix) -> Prefix:
        """The prefix with its tools as the dialect takes them, without those that it cannot be offered."""
        tools, self.aside = fitted(prefix.tools, self.rules)
        self._some_fit = bool(tools)
        self.names = {
            wire_name(tool.name, self.rules): tool.name for tool in prefix.tools if not self.rules.fits(tool.name)
        }
        return replace(prefix, tools=tools)

    def _follow(self, messages: Sequence[Message], *, prefill: bool = False) -> tuple[list[bytes], int]:
        """The turns of these messages as fragments, and their tokens. A turn is encoded again only where it grew."""
        transcript = self._transcript
        transcript.follow(messages)
        del self._encoded[transcript.fresh :], self._sizes[transcript.fresh :]
        for turn in transcript.turns[transcript.fresh :]:
            self._add(turn, self._encoded, self._sizes)
        transcript.mark_written()
        keep, ending = transcript.ending(prefill=prefill)
        fragments, sizes = self._encoded[:keep], self._sizes[:keep]
        for turn in ending:
            self._add(turn, fragments, sizes)
        return fragments, sum(sizes)

    def _add(self, turn: Turn, fragments: list[bytes], sizes: list[int]) -> None:
        fragments.append(self._turn(turn))
        parts: list[Part] = [*turn.parts, *(part for result in turn.results for part in result.parts)]
        sizes.append(estimate(fragments[-1], parts))

    @abstractmethod
    def _head(self, prefix: Prefix) -> bytes: ...

    @abstractmethod
    def _turn(self, turn: Turn) -> bytes: ...

    @abstractmethod
    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]: ...

    @abstractmethod
    def _path(self) -> str: ...

    def _headers(self, body: bytes) -> dict[str, str]:  # noqa: ARG002 - for those that sign what they send
        return self._route.key_header("authorization")

    def _shown(self, fragments: list[bytes]) -> list[bytes]:
        return fragments


def joined(head: bytes, fragments: list[bytes], tail: bytes) -> bytes:
    """`head`, the comma-separated fragments and `tail`, copied once because a long conversation is megabytes."""
    first, *others = fragments
    if not others:
        return b"".join((head, first, tail))
    others[-1] += tail
    return b",".join((head + first, *others))


LONGEST_EVENT = 16 * 1024 * 1024
"""Bytes of the lines of one event."""
BOM = b"\xef\xbb\xbf"


class SseDecoder:
    """Decoder of server-sent events by the WHATWG format, whose lines end with LF or CRLF. Only `data` is kept: `event`
    and `id` repeat what the data says in the supported protocols."""

    __slots__ = ("_data", "_line", "_size")

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that this chunk completes; `MalformedReply` where an event exceeds 16 MB."""
        first, *others = chunk.split(b"\n")
        self._line.append(first)
        self._size += len(chunk)
        events: list[bytes] = []
        if others:
            lines = [b"".join(self._line), *others]
            self._line = [lines.pop()]
            events = self._events(lines)
        if self._size > LONGEST_EVENT:
            raise MalformedReply(f"The stream holds an event of more than {LONGEST_EVENT // 2**20} MB.")
        return events

    def finish(self) -> list[bytes]:
        """The data of an event that the stream's end completes: many servers omit the last empty line."""
        return self.feed(b"\n\n")

    def _events(self, lines: list[bytes]) -> list[bytes]:
        complete: list[bytes] = []
        for line in lines:
            name, _, value = line.removeprefix(BOM).removesuffix(b"\r").partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif line in {b"", b"\r"}:
                complete += [b"\n".join(self._data)] if self._data else []
                self._data, self._size = [], 0
        return complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The dialect of one kind of API. `errors` maps the kinds and codes of its error bodies to outcomes. `compiler`
    writes the requests of a conversation, `framing` splits the answer into events, `reader` decodes them; each is
    created anew for each conversation, stream and answer. `tools` are its rules for tools."""

    errors: Table
    compiler: Callable[[Route], ConversationCompiler]
    reader: Callable[[Route, Table, Taken], ReplyReader[Any]]
    framing: Callable[[], Framing] = SseDecoder
    tools: ToolRules = PLAIN

    def decoder(self, route: Route, taken: Taken, names: Names = NO_NAMES) -> ReplyReader[Any]:
        """A reader for one answer; its calls get ids that are not among `taken`, and tools their real `names`."""
        reader = self.reader(route, self.errors, taken)
        reader.names = names
        return reader


# Tokens of reasoning for the models that take a number instead of a level; 1,024 is the least that the API takes.
BUDGETS: dict[Level, int] = {
    "minimal": 1_024,
    "low": 4_096,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
LEAST_BUDGET = 1_024


def thinking_fields(facts: ModelFacts, level: Level, max_output: int, turns: Sequence[Turn]) -> dict[str, Any]:
    """The request fields for thinking at this level; none where the model, or the conversation, has no thinking."""
    if facts.thinking == "adaptive":
        if level == "none":
            return {"thinking": {"type": facts.thinking_off}}
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": level},
        }
    budget = min(BUDGETS.get(level, 0), max_output // 2)
    if facts.thinking != "budget" or budget < LEAST_BUDGET or not _may_think(turns):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _may_think(turns: Sequence[Turn]) -> bool:
    """With a budget, a turn that called tools must have begun with thinking: one made by another model did not."""
    last = next((turn for turn in reversed(turns) if turn.role is Role.ASSISTANT), None)
    if last is None or not turns[-1].results:
        return True
    first = last.parts[0]
    return isinstance(first, Thinking) and bool(first.opaque)
