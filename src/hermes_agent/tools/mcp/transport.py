"""Transports for the MCP SDK: a program behind the wall over its pipes, and addresses over HTTP or SSE.

Needs the extra `mcp`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import BaseModel, ValidationError

from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.piped import Piped
from hermes_agent.tools.mcp.listing import Streams

LONGEST_MESSAGE = 16 << 20
"""Bytes of one message; the answer to a request that is longer becomes an error."""
LOUD = 10
"""Lines of a server that are no messages, after which a warning says so."""
READ_SECONDS = 3600.0
"""How long a response may say nothing: one that announces changes may be quiet, and calls have limits of their own."""
LAST_SECONDS = 0.5
"""Seconds after a program's last words in which its exit code is waited for."""
EDGE = 4096
"""Bytes at either end of a message in which its id is looked for."""
_ID, _MARK = rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)', rb'"jsonrpc"\s*:\s*"2\.0"'
_NAMED = rb"(?:%b\s*,\s*%b|%b\s*,\s*%b)" % (_MARK, _ID, _ID, _MARK)
_FIRST, _LAST = re.compile(rb"\s*\{\s*" + _NAMED), re.compile(_NAMED + rb"\s*\}\s*$")
log = logging.getLogger(__name__)
Dropped = Callable[[str, str], None]
"""Called with a tool's name and the reason why it was taken out of a listing."""


LISTED: Mapping[str, type[BaseModel]] = {
    "tools": types.Tool,
    "prompts": types.Prompt,
    "resources": types.Resource,
    "resourceTemplates": types.ResourceTemplate,
}


class ListFilter:
    """The read stream of a connection without what would make the SDK refuse a whole listing: single things that the
    protocol does not allow. `dropped` is told of each tool."""

    def __init__(self, stream: Any, dropped: Dropped) -> None:  # noqa: ANN401 - a stream of the SDK
        self._stream, self._dropped = stream, dropped

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else the stream has
        return getattr(self._stream, name)

    def __aiter__(self) -> ListFilter:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._cleaned(await self._stream.__anext__())

    async def __aenter__(self) -> ListFilter:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:  # noqa: ANN401 - as the stream
        return await self._stream.__aexit__(*error)

    def _cleaned(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        result = getattr(getattr(item, "message", None), "result", None)
        for kind, model in LISTED.items():
            if isinstance(result, dict) and isinstance(listed := result.get(kind), list):
                result[kind] = [each for each in listed if self._is_valid(kind, model, each)]
        return item

    def _is_valid(self, kind: str, model: type[BaseModel], plain: object) -> bool:
        why = ""
        try:
            found = model.model_validate(plain, by_name=False)
            if isinstance(found, types.Tool) and found.input_schema.get("type") != "object":
                why = "its parameters are not an object"
        except (ValidationError, RecursionError) as error:
            what = error.errors()[0]["loc"] if isinstance(error, ValidationError) and error.errors() else ("it",)
            why = f"the protocol does not allow its {'.'.join(map(str, what))}"
        if why and kind == "tools":
            self._dropped(str(plain.get("name", ""))[:200] if isinstance(plain, dict) else "", why)
        return not why


@asynccontextmanager
async def program_streams(
    start: Callable[[], Awaitable[Piped]], ended: Callable[[str], None]
) -> AsyncIterator[Streams]:
    """Context manager: the streams of a program. `ended` is told once it says no more."""
    program = await start()
    messages, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        spawn(_hear(program, messages, ended), name="words of an MCP server"),
        spawn(_say(program, outgoing, messages), name="words to an MCP server"),
    ]
    try:
        yield read, write
    finally:
        for stream in (read, write):
            stream.close()
        await asyncio.shield(spawn(_end(program, tasks), name="end of an MCP server"))
        for left in (messages, outgoing):
            left.close()


async def _end(program: Piped, tasks: list[asyncio.Task[None]]) -> None:
    await program.close()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def _say(program: Piped, outgoing: Any, messages: Any) -> None:  # noqa: ANN401 - streams of the SDK
    try:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await program.write(text.encode() + b"\n")
    except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        messages.close()


async def _hear(program: Piped, messages: Any, ended: Callable[[str], None]) -> None:  # noqa: ANN401 - as above
    strange, why = 0, ""
    try:
        async for line in _lines(program):
            if item := _message(line) or _message(_refusal(line, line, b"The answer is no message.")):
                await messages.send(item)
                continue
            strange += 1
            if strange <= LOUD:
                log.info("The MCP server %s said what is no message: %s", program.name, ascii(line[:200]))
            if strange == LOUD:
                log.warning("The MCP server %s writes to its standard output. More of it is dropped.", program.name)
        await program.ended(LAST_SECONDS)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        why = "nobody reads its connection any more"
    finally:
        messages.close()
        ended(why or _last_words(program))


def _message(line: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


def _last_words(program: Piped) -> str:
    """How a program ended: its code, the last line of what it said, and what the wall has to do with it."""
    code = "" if program.code is None else f" with {program.code}"
    wall = f"; the wall stopped it: {'; '.join(program.stopped[:3])}" if program.stopped else ""
    return f"its program ended{code}{': ' * bool(program.last_words)}{program.last_words}{wall}"


async def _lines(program: Piped) -> AsyncIterator[bytes]:
    """Lines of bounded length; a longer one becomes an error for the request that it answers."""
    kept, head = bytearray(), b""
    while chunk := await program.read():
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            kept += piece
            line = _refusal(head, kept, b"The answer is longer than %d MB." % (LONGEST_MESSAGE >> 20)) if head else kept
            if line.strip():
                yield bytes(line)
            kept.clear()
            head = b""
        kept += rest
        if head or len(kept) > LONGEST_MESSAGE:
            head = head or bytes(kept[:EDGE])
            del kept[:-EDGE]


def _refusal(head: bytes, tail: bytes | bytearray, why: bytes) -> bytes:
    """An error for the request that an answer names, which begins and ends so; empty where it names none. Some programs
    write the id first, and some last."""
    named = _FIRST.match(head[:EDGE]) or _LAST.search(tail[-EDGE:])
    return _ERROR % (named[1] or named[2], why) if named else b""


_ERROR = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32603,"message":"%b"}}'


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response, no longer than `most` bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream, self._left = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.StreamError(f"The answer is compressed, or longer than {LONGEST_MESSAGE >> 20} MB.")
            yield chunk

    async def aclose(self) -> None:
        """See httpx2."""
        await self._stream.aclose()


async def _bounded(response: httpx2.Response) -> None:
    """Bound a body, and refuse one that unpacks to nobody knows how much. The SDK bounds events."""
    is_packed = response.headers.get("content-encoding", "identity") != "identity"
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    if isinstance(response.stream, httpx2.AsyncByteStream) and (is_packed or not is_stream):
        response.stream = _Bounded(response.stream, 0 if is_packed else LONGEST_MESSAGE)


@asynccontextmanager
async def http_streams(
    url: str, headers: Mapping[str, str], auth: httpx2.Auth | None, *, seconds: float, sse: bool
) -> AsyncIterator[Streams]:
    """Context manager: the streams of an address. Redirects to another origin are not followed, and no message is
    longer than `LONGEST_MESSAGE`."""
    async with AsyncExitStack() as closing:

        def client(*_: object, **__: object) -> httpx2.AsyncClient:
            limit = httpx2.Timeout(seconds, read=READ_SECONDS)
            given = {"accept-encoding": "identity", **headers}
            hooks = {"response": [_bounded]}
            return httpx2.AsyncClient(headers=given, auth=auth, timeout=limit, event_hooks=hooks)

        if sse:
            opened: AbstractAsyncContextManager[Streams] = sse_client(url, httpx_client_factory=client)
        else:
            http = await closing.enter_async_context(client())
            opened = streamable_http_client(url, http_client=http, max_sse_event_size=LONGEST_MESSAGE)
        yield await closing.enter_async_context(opened)
