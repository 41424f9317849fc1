"""HTTP servers for the API and webhooks: opens, moves and closes them, in a gateway or a process of their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import field
from functools import lru_cache
from typing import Any

from hermes_agent.api import board, completion, goals, jobs, meta, responses, runs, sessions
from hermes_agent.api.endpoint import MEGABYTE, Answer, AppState, Call, Endpoint, EndpointApp, Nothing, principal_of
from hermes_agent.api.keys import Keys, open_keys
from hermes_agent.api.meta import description
from hermes_agent.api.metrics import Metrics
from hermes_agent.api.problems import JSON, answer_of
from hermes_agent.api.service import AgentService
from hermes_agent.api.webhooks.incoming import check as check_webhooks, webhooks
from hermes_agent.app.chats.platforms import PlatformOf, own_platform
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.process import Tape
from hermes_agent.app.reloading import Reloading
from hermes_agent.app.settings import API_KEY, DRAIN_SECONDS, SERVED, Settings
from hermes_agent.app.system import System, served
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.inbound.listener import Listening, Routes, listen
from hermes_agent.host.inbound.message import SAFE, Handler, Policy, Refused, Request, Response, check_names, written
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home

MCP_PATH = "/mcp"
MCP_ENDPOINT = "hermes_agent.mcp_server.http:endpoint_of"


async def describe(state: AppState, call: Call[Nothing, Nothing]) -> Answer:  # noqa: ARG001  an endpoint's shape
    """Serve the OpenAPI document."""
    return Response(headers={"content-type": JSON}, body=described())


ENDPOINTS: tuple[Endpoint, ...] = (
    completion.CHAT_COMPLETIONS,
    *responses.ENDPOINTS,
    *runs.ENDPOINTS,
    *sessions.ENDPOINTS,
    *goals.ENDPOINTS,
    *jobs.ENDPOINTS,
    *board.ENDPOINTS,
    *meta.ENDPOINTS,
    Endpoint(method="GET", path="/openapi.json", act=describe, summary="This description.", answer=None),
)


@lru_cache(maxsize=1)
def described() -> bytes:
    """The OpenAPI document as bytes, cached."""
    return written(description(ENDPOINTS))


@asynccontextmanager
async def api_server(runtime: System, keys: Keys, metrics: Metrics) -> AsyncIterator[Listening]:
    """Context manager: serve the API as configured. Raises `OSError`."""
    settings, routes = runtime.settings.api, Routes()
    state = AppState(runtime=runtime, keys=keys, service=AgentService(runtime), metrics=metrics)
    for each in ENDPOINTS:
        routes.mount(each.path, each.method, EndpointApp(state, each))
    mcp = McpApp(state)
    for method in ("GET", "POST", "DELETE"):
        routes.mount(MCP_PATH, method, mcp)

    async def guarded(request: Request) -> Response:
        check_names(request, (state.settings.host, *state.settings.allowed_hosts))
        return await routes(request)

    async with counted(guarded, settings.host, settings.port, metrics) as place:

        def revoke() -> None:
            place.cut(lambda request: request.key is not None and request.key not in keys.hashes)
            mcp.keep(keys)

        keys.replaced.add(revoke)
        try:
            yield place
        finally:
            keys.replaced.discard(revoke)
            state.ending.set()
            await mcp.close()


class McpApp:
    """Request handler of `/mcp`: authenticates; what answers loads with the first request."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._endpoint: Any = None

    async def __call__(self, request: Request) -> Response:
        """Answer one request. Raises `Refused`."""
        who, state = principal_of(self._state, request), self._state
        try:
            self._endpoint = self._endpoint or late(MCP_ENDPOINT)(state.runtime, state.ending)
        except ModuleNotFoundError as error:
            words = f"{MCP_PATH} needs the extra `mcp`: pip install 'hermes-runtime[mcp]' ({error.name})."
            raise Refused(501, words, code="not_installed") from error
        response: Response = await self._endpoint(request, who, int(state.settings.max_body_mb * MEGABYTE))
        return response

    def keep(self, keys: Keys) -> None:
        """End the sessions of principals that have no key any more."""
        if self._endpoint is not None:
            self._endpoint.keep({who for _, who in keys.hashes})

    async def close(self) -> None:
        """End its sessions."""
        if self._endpoint is not None:
            await self._endpoint.close()


def counted(handler: Handler, host: str, port: int, metrics: Metrics) -> AbstractAsyncContextManager[Listening]:
    """Context manager: serve a handler and count its requests; on exit waits shortly for open answers. Raises
    `OSError`."""

    def answered(request: Request, status: int) -> None:
        metrics.answered(request.method, request.route, status, time.monotonic() - request.arrived)

    return listen(
        handler, host, port, Policy(drain_seconds=DRAIN_SECONDS, headers=SAFE, refuse=answer_of, answered=answered)
    )


Say = Callable[[str], None]
NO_API = "The API is not served: it has no key. `hermes api key` makes one."


async def serve(
    home: Home,
    say: Say,
    *,
    until_told: Callable[[], Awaitable[object]],
    tape: Tape | None = None,
    platform: PlatformOf = own_platform,
) -> None:
    """Run the API server, with webhooks if enabled, until told to stop; `tape` and `platform` as in `Options`.
    Raises `ConfigError`."""
    options = Options(queue=SERVED, own_only=False, reviews=True, tape=tape, platform=platform)
    async with open_system(home, options) as runtime:
        if runtime.notice:
            say(runtime.notice)
        servers = Servers(runtime, say, alone=True)
        try:
            await servers.follow(runtime.settings)
            if not servers.url:
                say(NO_API)
            if runtime.hooks is not None:
                await runtime.hooks.fire("gateway:start", {"url": servers.url})
            async with Reloading(runtime, [servers], lambda: None).following():
                await served(runtime.hermes, until_told())
        finally:
            await servers.close()


@dataclass(slots=True, kw_only=True)
class Post:
    """One HTTP server that can be opened, moved and closed; `place` is its host and port (None: closed)."""

    open: Callable[[], AbstractAsyncContextManager[Listening]]
    words: str
    place: tuple[str, int] | None = None
    url: str = ""
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def address(self) -> str:
        """Where it listens, as text; empty if closed."""
        return self.words.format(url=self.url) if self.url else ""

    async def rebind(self, wanted: tuple[str, int] | None, say: Say) -> None:
        """Move to this address. Raises `ConfigError` if it cannot be bound; the old one stays open unless it has the
        same port."""
        if wanted == self.place:
            return
        if wanted is None or (self.place is not None and wanted[1] == self.place[1]):
            await self.close()
        if wanted is None:
            return
        fresh = AsyncExitStack()
        try:
            listening = await fresh.enter_async_context(self.open())
        except OSError as error:
            words = f"{wanted[0]}:{wanted[1]} cannot be listened on ({error.strerror}): "
            raise ConfigError(f"{words}choose another port (`api.port`, `webhooks.port`).") from error
        await self.close()
        self.closing, self.place, self.url = fresh, wanted, listening.url
        say(self.address)

    async def close(self) -> None:
        """Stop listening, after a short wait for open answers."""
        self.place, self.url = None, ""
        await self.closing.aclose()


@asynccontextmanager
async def webhook_server(runtime: System, metrics: Metrics) -> AsyncIterator[Listening]:
    """Context manager: serve the webhook routes as configured. Raises `ConfigError`, `OSError`."""
    settings = runtime.settings.webhooks
    async with counted(await webhooks(runtime, metrics), settings.host, settings.port, metrics) as place:
        yield place


class Servers:
    """The API and webhook servers of a system. With `alone` the API is on unless only webhooks are set up."""

    def __init__(self, runtime: System, say: Say, *, alone: bool = False) -> None:
        self._keys = keys = Keys()
        self._runtime, self._say, self._alone, self._closed = runtime, say, alone, False
        self._moving = asyncio.Lock()
        metrics = Metrics()
        self._api = Post(open=lambda: api_server(runtime, keys, metrics), words="The API answers at {url}/v1")
        self._webhooks = Post(
            open=lambda: webhook_server(runtime, metrics), words="Webhooks are taken at {url}/webhooks"
        )

    @property
    def url(self) -> str:
        """The API's URL; empty if it is off."""
        return self._api.url

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where each server listens, as text."""
        return tuple(filter(None, (self._api.address, self._webhooks.address)))

    def check(self, settings: Settings, secret: Callable[[str], str]) -> None:
        """Raise `ConfigError` for invalid keys or routes."""
        check(settings, secret, alone=self._alone)

    async def follow(self, settings: Settings) -> None:
        """Apply settings: rebind the servers and replace the keys. Raises `ConfigError`."""
        api, webhooks = settings.api, settings.webhooks
        async with self._moving:  # A gateway that begins, and the settings that change meanwhile, both say where.
            if self._closed:
                return
            keys = wanted_keys(settings, self._runtime.secrets.get, alone=self._alone)
            self._keys.replace(keys)
            await self._api.rebind(None if keys is None else (api.host, api.port), self._say)
            await self._webhooks.rebind((webhooks.host, webhooks.port) if webhooks.enabled else None, self._say)

    async def close(self) -> None:
        """Close both servers."""
        self._closed = True
        async with self._moving:
            await self._webhooks.close()
            await self._api.close()


def check(settings: Settings, secret: Callable[[str], str], *, alone: bool = False) -> None:
    """Raise `ConfigError` for invalid keys or routes."""
    wanted_keys(settings, secret, alone=alone)
    check_webhooks(settings.webhooks, settings.gateway.channels)


def wanted_keys(settings: Settings, secret: Callable[[str], str], *, alone: bool) -> Keys | None:
    """The keys of the API; None if the API is off. Raises `ConfigError`."""
    if alone:
        return keys_of(settings, secret)
    return open_keys(settings.api, secret) if settings.api.enabled else None


def keys_of(settings: Settings, secret: Callable[[str], str]) -> Keys | None:
    """The keys of the API; None if it has none and only webhooks, which authenticate by signature, are served.
    Raises `ConfigError`."""
    if settings.webhooks.enabled and not settings.api.keys and not secret(API_KEY):
        return None
    return open_keys(settings.api, secret)
