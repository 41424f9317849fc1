"""One connection to an MCP server, through the official SDK. Needs the extra `mcp`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.host.tasks import first_of, spawn
from hermes_agent.store.mcp.catalogue import McpPrompt, McpTool
from hermes_agent.tools.mcp.listing import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    LONGEST_SAID,
    MOST_DESCRIBED,
    TOO_LARGE,
    Listing,
    Lost,
    Malformed,
    Setup,
)
from hermes_agent.tools.mcp.questions import NO, Exchange, ask_address, ask_form, current, is_bounded
from hermes_agent.tools.mcp.tasks import TASKS, Tasks, end_task, follow_task
from hermes_agent.tools.mcp.transport import ListFilter
from hermes_agent.version import VERSION

MOST_PAGES, MOST_LISTED, MOST_PROMPTS, MOST_ARGUMENTS = 100, 5_000, 500, 50
LISTS = ("tools_list_changed", "prompts_list_changed")
CLOSED = types.CONNECTION_CLOSED
TERMINATED, LOST = "Session terminated", ("Connection closed", "SSE stream ")
"""How the SDK words a loss. Servers use the code of one for errors of their own."""
CLOSE_SECONDS = 5.0
FAILURES = (MCPError, HermesError, OSError, RuntimeError, ValueError, httpx2.HTTPError, ExceptionGroup)
"""What a server, its program or its address may do to us. Groups are of the SDK's own tasks."""
T = TypeVar("T")
Said = TypeVar("Said", McpTool, McpPrompt)
log = logging.getLogger(__name__)


class Connection:
    """An open connection, owned by a task of its own: the SDK wants to be left by the task that entered it."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.why = ""
        self._over = asyncio.Event()
        self._opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._exchanges: list[Exchange] = []
        self._dropped: dict[str, str] = {}
        self._listing = asyncio.Lock()
        self._listening: list[asyncio.Task[None]] = []
        self._own: Mapping[str, Callable[..., Awaitable[Any]]] = {
            "follow_task": follow_task,
            "end_task": end_task,
            "watch": self._watch,
        }
        self._task = spawn(self._run(), name=f"MCP server {setup.server.name}")

    @property
    def is_open(self) -> bool:
        """Whether calls can be made."""
        return self._opened.done() and not self._over.is_set() and self.setup.is_alive()

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left."""
        return self._task.done()

    async def opened(self) -> None:
        """Wait until it is open. Raises `Lost`."""
        await asyncio.shield(self._opened)

    def end(self, why: str) -> None:
        """Have it end; `why` is told to who still waits."""
        self.why = self.why or self.setup.redact(why)
        self._over.set()

    async def close(self) -> None:
        """End it and its program."""
        self.end("it was closed")
        if not self._opened.done():
            self._task.cancel()
        _, left = await asyncio.wait((self._task,), timeout=CLOSE_SECONDS)
        for task in left:
            task.cancel()

    async def _run(self) -> None:
        try:
            async with self._client() as client:
                self._opened.set_result(client)
                self._listens(client)
                await self._over.wait()
        except asyncio.CancelledError:
            self.why = self.why or "connecting was given up"
        except FAILURES as error:
            cause = first_of(error)
            is_closed = isinstance(cause, MCPError) and cause.code == CLOSED
            self.why = self.why if self.why and is_closed else self.setup.redact(_words(cause))
            log.info("The MCP server %s: %s", self.setup.server.name, self.why)
        finally:
            self._over.set()
            for each in self._listening:
                each.cancel()
            if not self._opened.done():
                self._opened.set_exception(Lost(self.why, unsent=True))
                self._opened.exception()  # Where nobody waits for it.

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        """The SDK's client. A server that has tasks gets a second one over the same streams, which says so: to others
        they are not offered."""
        own = self.setup.server.settings
        made = partial(
            Client,
            client_info=types.Implementation(name="hermes", version=VERSION),
            message_handler=self._hear,
            elicitation_callback=self._elicit if own.elicitation else None,
            sampling_callback=self._sample if self.setup.sample else None,
            list_roots_callback=self._roots if own.roots and self.setup.workspace else None,
            cache=None,
        )
        async with self.setup.streams(self.end) as (read, write), read, write:
            async with (
                read.clone() as own_read,
                write.clone() as own_write,
                made(nullcontext((ListFilter(own_read, self._drop), own_write))) as first,
            ):
                version, found = first.protocol_version, first.session.discover_result
                if found is None or TASKS not in (found.capabilities.extensions or {}):
                    read.close(), write.close()
                    yield first
                    return
            streams = nullcontext((ListFilter(read, self._drop), write))
            async with made(streams, mode=version, prior_discover=found, extensions=[Tasks()]) as client:
                yield client

    def _drop(self, name: str, why: str) -> None:
        self._dropped[name or f"tool {len(self._dropped) + 1}"] = why

    async def _hear(self, message: Any) -> None:  # noqa: ANN401 - any notification of the SDK
        match message:
            case types.ToolListChangedNotification() | types.PromptListChangedNotification():
                self.setup.changed("")
            case types.ResourceUpdatedNotification(params=params):
                self.setup.changed(params.uri)

    def _listens(self, client: Client, uri: str = "") -> asyncio.Future[bool]:
        """Have a server of the newer protocol say when a resource, or (empty) its lists, change, as long as the
        connection lasts; whether it agreed."""
        agreed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        listen = _listen(client, uri, agreed, self._over, self.setup.changed)
        listening = spawn(listen, name=f"changes of {self.setup.server.name}")
        listening.add_done_callback(lambda _: None if agreed.done() else agreed.set_result(False))
        agreed.add_done_callback(lambda _: listening.cancel() if agreed.cancelled() else None)
        self._listening.append(listening)
        return agreed

    async def _watch(self, client: Client, uri: str) -> None:
        """Have `changed` called when the resource changes."""
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            await client.session.send_request(request, types.EmptyResult)
        elif not await self._listens(client, uri):
            if self._over.is_set():
                raise Lost(self.why)
            raise ToolError(f"{self.setup.server.name} does not say when that changes.")

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:  # noqa: ARG002 - the SDK's shape
        folder = Path(self.setup.workspace)
        return types.ListRootsResult(roots=[types.Root(uri=folder.as_uri(), name=folder.name)])  # type: ignore[arg-type]  # pydantic reads the text

    async def _elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as above
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        exchange, name, reply = self._exchange(), self.setup.server.name, NO
        if exchange is not None and isinstance(params, types.ElicitRequestURLParams):
            reply = await ask_address(name, params.message, params.url, exchange)
        elif exchange is not None and isinstance(params, types.ElicitRequestFormParams):
            reply = await ask_form(name, params.message, params.requested_schema, exchange)
        return types.ElicitResult(**reply)

    async def _sample(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as above
        params: types.CreateMessageRequestParams,
    ) -> types.CreateMessageResult | types.ErrorData:
        exchange = self._exchange()
        said = [(each.role, block) for each in params.messages for block in each.content_as_list]
        text = "\n\n".join(f"{role}: {block.text}" for role, block in said if block.type == "text")
        try:
            if exchange is None or self.setup.sample is None:
                raise ToolError("No call is under way for which the model could be asked.")
            answer = await self.setup.sample(exchange, params.system_prompt or "", text)
        except HermesError as error:
            return types.ErrorData(code=types.INVALID_REQUEST, message=str(error))
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text=answer), model="hermes")

    def _exchange(self) -> Exchange | None:
        """The call for which a server asks; None where calls of several sessions are under way, since nobody knows
        which it is."""
        is_one = len({each.context.session for each in self._exchanges}) == 1
        return current.get() or (self._exchanges[-1] if is_one else None)

    async def listing(self) -> Listing:
        """What the server offers now. Raises `Lost`, `ToolError`."""
        client = await self._opened
        async with self._listing:  # What is dropped is of one at a time.
            self._dropped.clear()
            able, info, prompts = client.server_capabilities, client.server_info, list[McpPrompt]()
            made = partial(_tool, tasks=TASKS in (able.extensions or {}))
            tools = await self._pages(client.list_tools, "tools", made) if able.tools is not None else []
            tools += [McpTool(name=name, why=why) for name, why in self._dropped.items()]
            if able.prompts is not None:
                with suppress(ToolError):  # Its tools can be used without them.
                    prompts = await self._pages(client.list_prompts, "prompts", _prompt)
        return Listing(
            version=str(client.protocol_version),
            title=(info.title or info.name)[:LONGEST_SAID] if info else "",
            tools=tuple(tools),
            prompts=tuple(prompts[:MOST_PROMPTS]),
        )

    async def _pages(
        self, ask: Callable[..., Coroutine[Any, Any, Any]], kind: str, made: Callable[[Any], Said]
    ) -> list[Said]:
        found: list[Said] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._guarded(ask(cursor=cursor))
            found += map(made, getattr(page, kind))
            cursor = page.next_cursor
            if not cursor or len(found) >= MOST_LISTED:
                break
        return found[:MOST_LISTED]

    async def ask(self, method: str, *arguments: Any, exchange: Exchange | None = None, **named: Any) -> Any:  # noqa: ANN401 - results of the SDK
        """Call a method of the SDK's client, or one beside them; questions of the server go to `exchange`. Raises
        `Lost`, `ToolError`."""
        client = await self._opened
        own = self._own.get(method)
        act = partial(own, client) if own else getattr(client, method)
        if exchange is not None:
            self._exchanges.append(exchange)
            token = current.set(exchange)
        try:
            result = await self._guarded(act(*arguments, **named))
            if getattr(result, "is_error", False):  # It may not have that tool any more.
                self.setup.changed("")
            return result
        finally:
            if exchange is not None:
                self._exchanges.remove(exchange)
                current.reset(token)

    async def _guarded(self, asked: Awaitable[T]) -> T:
        try:
            return await asked
        except MCPError as error:
            if error.message == TERMINATED or (error.code == CLOSED and error.message.startswith(LOST)):
                self.end(error.message if error.message != "Connection closed" else "the connection was closed")
                raise Lost(self.why, unsent=error.message == TERMINATED) from error
            if error.code == types.INVALID_PARAMS and not self._listing.locked():  # Others say it so.
                self.setup.changed("")
            said = Quoted(text=self.setup.redact(error.message), origin=Origin.TOOL)
            raise ToolError(f"{self.setup.server.name} answered with an error:", quoted=said) from error
        except (ValidationError, RuntimeError) as error:
            said = Quoted(text=self.setup.redact(str(error)[:1000]), origin=Origin.TOOL)
            raise Malformed(
                f"{self.setup.server.name} answered what its schema does not allow:", quoted=said
            ) from error


async def _listen(
    client: Client, uri: str, agreed: asyncio.Future[bool], over: asyncio.Event, changed: Callable[[str], None]
) -> None:
    """Listen until the connection is `over`; a server that ends it is asked again."""
    pause = FIRST_PAUSE
    while client.protocol_version in MODERN_PROTOCOL_VERSIONS and not over.is_set():
        with suppress(SubscriptionLost, MCPError, TimeoutError):
            await _listen_once(client, uri, agreed, lambda: None if over.is_set() else changed(uri))
        if not (agreed.done() and agreed.result()):
            return
        pause = min(2 * pause, LONGEST_PAUSE)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await over.wait()


async def _listen_once(client: Client, uri: str, agreed: asyncio.Future[bool], tell: Callable[[], None]) -> None:
    """Listen until the server ends it. Nobody knows what changes until it listens again: both is told."""
    what: dict[str, Any] = {"resource_subscriptions": [uri]} if uri else dict.fromkeys(LISTS, True)
    async with client.listen(**what) as changes:
        is_heard = any(getattr(changes.honored, name) for name in what)
        if not agreed.done():
            agreed.set_result(is_heard)
        elif is_heard:
            tell()
        try:
            async for _ in changes:
                pass  # `_hear` hears the same.
        finally:
            if is_heard:
                tell()


def _tool(tool: types.Tool, *, tasks: bool) -> McpTool:
    """A tool, with no more of it than is kept."""
    is_small, hints = is_bounded(tool.input_schema), tool.annotations
    return McpTool(
        name=tool.name[: LONGEST_SAID + 1],
        description=(tool.description or tool.title or "")[:MOST_DESCRIBED],
        parameters=tool.input_schema if is_small else {},
        reads=bool(hints and hints.read_only_hint),
        tasks=tasks,
        why="" if is_small else TOO_LARGE,
    )


def _prompt(prompt: types.Prompt) -> McpPrompt:
    arguments = (prompt.arguments or ())[:MOST_ARGUMENTS]
    return McpPrompt(
        name=prompt.name[:LONGEST_SAID],
        description=(prompt.description or prompt.title or "")[:MOST_DESCRIBED],
        arguments=tuple(each.name[:LONGEST_SAID] for each in arguments),
        required=tuple(each.name[:LONGEST_SAID] for each in arguments if each.required),
    )


def _words(error: BaseException) -> str:
    """Why a connection failed, for people."""
    said = str(error).strip() or type(error).__name__
    is_version = isinstance(error, MCPError) and error.code == types.UNSUPPORTED_PROTOCOL_VERSION
    if is_version or "nsupported protocol version" in said:
        ours = ", ".join((*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS))
        return f"it speaks none of our versions of the protocol ({ours}); it says: {said}"[:600]
    return said[:300]
