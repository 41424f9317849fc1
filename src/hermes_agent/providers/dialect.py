"""What a dialect is: how one kind of API is asked and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ProviderError
from hermes_agent.core.messages import Text, Thinking, ToolCall
from hermes_agent.core.model import Delta, ModelRequest, StopReason, Usage
from hermes_agent.providers.route import Route
from hermes_agent.providers.sse import SseDecoder
from hermes_agent.providers.tool_schemas import PLAIN, SetAside, ToolRules

Table = Mapping[str, type[ProviderError]]
Taken = frozenset[str] | set[str]
Names = Mapping[str, str]
NO_NAMES: Names = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A request as it is sent: `path` follows the route's base URL, `body` is JSON in UTF-8."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A whole answer. `cost` is in US dollars where the provider itself said it."""

    parts: tuple[Text | Thinking | ToolCall, ...]
    stop: StopReason
    usage: Usage
    cost: float | None = None


class Framing(Protocol):
    """Cuts the response's bytes into events.

    - `feed` gives the data of the events that the bytes complete;
    - `finish` gives what the end of the stream completes;
    - raises only `MalformedReply`.
    """

    def feed(self, chunk: bytes) -> list[bytes]: ...

    def finish(self) -> list[bytes]: ...


class Decoder(Protocol):
    """Reads one answer.

    - `feed` takes the data of one event and gives the deltas in it; raises the `ProviderError` that the stream
      reports, and `MalformedReply` for what is not of the protocol;
    - `content` grows with everything that belongs to the answer (words, thinking, arguments) and with nothing else;
    - `names` are the real names of tools that are called otherwise on the wire;
    - `words` is the text so far; `done` is True after the protocol's end mark;
    - `finish` gives the whole answer; raises `MalformedReply` where the answer has no end, `EmptyReply` where it has
      neither words nor calls, `ContentRefused` where it was refused without a word.
    """

    content: int
    done: bool
    names: Names

    @property
    def words(self) -> str: ...

    def feed(self, data: bytes) -> Sequence[Delta]: ...

    def finish(self) -> Finished: ...


class Compiler(Protocol):
    """Writes the requests of one conversation on one route.

    - what was compiled of earlier messages is kept, so that a request costs what its new messages cost;
    - system prompt and tools are byte-identical in all requests with the same prefix;
    - after `forget` nothing of the thinking in the messages so far, and nothing that the provider keeps, is sent again:
      it refused them;
    - `tokens` is the size of what `take` was given last, prefix and messages together, by bytes / 4;
    - `names` are the real names of those tools that are called otherwise on the wire;
    - `aside` are those tools of the prefix that this dialect cannot be offered;
    - `call_ids` holds the id of every call in the messages.
    """

    tokens: int
    names: Names
    aside: Sequence[SetAside]

    @property
    def call_ids(self) -> Taken: ...

    def forget(self) -> None: ...

    def take(self, request: ModelRequest) -> None: ...

    def write(self, request: ModelRequest, max_output: int | None) -> Wire: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One kind of API.

    `errors` maps the kinds and codes of its error bodies to outcomes. `compiler` writes the requests of a
    conversation, `framing` cuts the answer into events, `reader` reads them; each is made anew for each conversation,
    stream and answer. `tools` is what it takes as a tool.
    """

    errors: Table
    compiler: Callable[[Route], Compiler]
    reader: Callable[[Route, Table, Taken], Decoder]
    framing: Callable[[], Framing] = SseDecoder
    tools: ToolRules = PLAIN

    def decoder(self, route: Route, taken: Taken, names: Names = NO_NAMES) -> Decoder:
        """A reader of one answer, whose calls get ids that are not among `taken`, and their real `names`."""
        reader = self.reader(route, self.errors, taken)
        reader.names = names
        return reader
