"""The dialect of an API: how requests are written and answers are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import MalformedReply
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.reading import ReplyReader
from hermes_agent.providers.route import Route
from hermes_agent.providers.tool_schemas import PLAIN, ToolRules
from hermes_agent.providers.wire import NO_NAMES, Framing, Names, Table, Taken

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line, and of all the data lines of one event."""
BOM = b"\xef\xbb\xbf"


class SseDecoder:
    """Decoder of server-sent events by the WHATWG format (CR, LF or CRLF, comments, several data lines, a byte order
    mark).

    Only `data` is kept: `event` and `id` repeat what the data says in the supported protocols.
    """

    __slots__ = ("_after_cr", "_begun", "_data", "_data_size", "_line", "_line_size")

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._line_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that this chunk completes; `MalformedReply` where a line or an event exceeds 16 MB."""
        if not self._begun:
            chunk = self._begin(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._plain_ends(chunk)
        first, *others = chunk.split(b"\n")
        self._line_size += len(first)
        if self._line_size > LONGEST_LINE:
            raise MalformedReply(f"The stream holds a line of more than {LONGEST_LINE // 2**20} MB.")
        self._line.append(first)
        if not others:
            return []
        lines = [b"".join(self._line), *others]
        rest = lines.pop()
        self._line, self._line_size = [rest], len(rest)
        return self._events(lines)

    def finish(self) -> list[bytes]:
        """The data of an event that the stream's end completes: many servers omit the last empty line."""
        left = self._events([b"".join(self._line), b""])
        self._line, self._line_size = [], 0
        return left

    def _begin(self, chunk: bytes) -> bytes:
        start = b"".join([*self._line, chunk])
        if len(start) < len(BOM) and BOM.startswith(start):
            self._line = [start]
            return b""
        self._begun = True
        self._line = []
        return start.removeprefix(BOM)

    def _plain_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        elif not chunk:
            return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, lines: list[bytes]) -> list[bytes]:
        complete: list[bytes] = []
        for line in lines:
            if not line:
                if self._data:
                    complete.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                    self._data, self._data_size = [], 0
            elif line.startswith(b"data:"):
                self._keep(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                self._keep(b"")
        return complete

    def _keep(self, data: bytes) -> None:
        self._data_size += len(data) + 1
        if self._data_size > LONGEST_LINE:
            raise MalformedReply(f"The stream holds an event of more than {LONGEST_LINE // 2**20} MB.")
        self._data.append(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The dialect of one kind of API.

    `errors` maps the kinds and codes of its error bodies to outcomes. `compiler` writes the requests of a
    conversation, `framing` splits the answer into events, `reader` decodes them; each is created anew for each
    conversation, stream and answer. `tools` are its rules for tools.
    """

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
