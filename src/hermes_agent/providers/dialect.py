"""What a dialect is: how one kind of API is asked and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.reading import ReplyReader
from hermes_agent.providers.route import Route
from hermes_agent.providers.sse import SseDecoder
from hermes_agent.providers.tool_schemas import PLAIN, ToolRules
from hermes_agent.providers.wire import NO_NAMES, Framing, Names, Table, Taken


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
