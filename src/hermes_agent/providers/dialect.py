"""What a dialect is: how one kind of API is asked and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ProviderError
from hermes_agent.core.messages import Text, Thinking, ToolCall
from hermes_agent.core.model import StopReason, Usage
from hermes_agent.providers.route import Route
from hermes_agent.providers.sse import SseDecoder
from hermes_agent.providers.tool_schemas import PLAIN, ToolRules

if TYPE_CHECKING:
    from hermes_agent.providers.conversation import ConversationCompiler
    from hermes_agent.providers.reading import ReplyReader

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One kind of API.

    `errors` maps the kinds and codes of its error bodies to outcomes. `compiler` writes the requests of a
    conversation, `framing` cuts the answer into events, `reader` reads them; each is made anew for each conversation,
    stream and answer. `tools` is what it takes as a tool.
    """

    errors: Table
    compiler: Callable[[Route], ConversationCompiler]
    reader: Callable[[Route, Table, Taken], ReplyReader[Any]]
    framing: Callable[[], Framing] = SseDecoder
    tools: ToolRules = PLAIN

    def decoder(self, route: Route, taken: Taken, names: Names = NO_NAMES) -> ReplyReader[Any]:
        """A reader of one answer, whose calls get ids that are not among `taken`, and their real `names`."""
        reader = self.reader(route, self.errors, taken)
        reader.names = names
        return reader
