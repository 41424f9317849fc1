"""The server on its socket: the endpoints behind the gate, from start to end."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from time import perf_counter

import uvicorn
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from hermes_agent.api import chat, meta, responses, runs, sessions
from hermes_agent.api.app_state import AppState
from hermes_agent.api.endpoint import Answer, Call, Endpoint, Nothing, Plain
from hermes_agent.api.endpoint_app import EndpointApp
from hermes_agent.api.events import written
from hermes_agent.api.keys import Keys
from hermes_agent.api.metrics import Metrics
from hermes_agent.api.middleware import Guard
from hermes_agent.api.openapi import description
from hermes_agent.api.protocol import Connection
from hermes_agent.api.service import AgentService
from hermes_agent.api.webhooks.incoming import webhooks
from hermes_agent.app.api_settings import DRAIN_SECONDS
from hermes_agent.app.system import System
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.tasks import spawn

BACKLOG = 2048
KEPT_SECONDS = 75
"""Seconds that a connection without a request stays open."""


async def describe(state: AppState, call: Call[Nothing, Nothing]) -> Answer:  # noqa: ARG001  an endpoint's shape
    """The API's own description."""
    return Plain(body=described(), media_type="application/json")


ENDPOINTS: tuple[Endpoint, ...] = (
    chat.CHAT_COMPLETIONS,
    *responses.ENDPOINTS,
    *runs.ENDPOINTS,
    *sessions.ENDPOINTS,
    *meta.ENDPOINTS,
    Endpoint(method="GET", path="/openapi.json", act=describe, summary="This description.", answer=None),
)


@lru_cache(maxsize=1)
def described() -> bytes:
    """The description as it is sent."""
    return written(description(ENDPOINTS))


def application(state: AppState) -> ASGIApp:
    """The endpoints behind the gate."""
    paths: dict[str, dict[str, EndpointApp]] = {}
    for each in ENDPOINTS:
        paths.setdefault(each.path, {})[each.method] = EndpointApp(state, each)
    # One route a path: what answers a method that it has not names all that it has.
    routes = [Route(path, endpoint=_Path(endpoints), methods=list(endpoints)) for path, endpoints in paths.items()]
    return Guard(
        Router(routes=routes, redirect_slashes=False),
        lambda: (state.settings.host, *state.settings.allowed_hosts),
        perf_counter,
        state.metrics.answered,
    )


class _Path:
    """The endpoints of one path, by their methods."""

    def __init__(self, endpoints: Mapping[str, EndpointApp]) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        await self._endpoints["GET" if method == "HEAD" else method](scope, receive, send)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A server that answers: where."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The address without a trailing slash."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@asynccontextmanager
async def api_server(runtime: System, keys: Keys, metrics: Metrics) -> AsyncIterator[Listening]:
    """The API of this system, as its settings say, until the block ends. Raises `ConfigError`."""
    settings = runtime.settings.api
    state = AppState(runtime=runtime, keys=keys, service=AgentService(runtime), metrics=metrics)
    async with listening(application(state), settings.host, settings.port) as place:
        try:
            yield place
        finally:
            state.ending.set()


@asynccontextmanager
async def webhook_server(runtime: System, metrics: Metrics) -> AsyncIterator[Listening]:
    """The webhook routes of this system, as its settings say, until the block ends. Raises `ConfigError`."""
    settings = runtime.settings.webhooks
    async with listening(await webhooks(runtime, metrics), settings.host, settings.port) as place:
        yield place


@asynccontextmanager
async def listening(
    app: ASGIApp, host: str, port: int, connection: type[Connection] = Connection
) -> AsyncIterator[Listening]:
    """Serve an application until the block ends; then answers under way are waited for a little. Raises
    `ConfigError`."""
    bound = _bound(host, port)
    config = uvicorn.Config(
        app,
        http=connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEPT_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = _Server(config)
    serving = spawn(server.serve(sockets=[bound]), name=f"server {host}:{port}")
    try:
        await server.ready.wait()
        yield Listening(host=host, port=bound.getsockname()[1])
    finally:
        server.should_exit = True
        await serving
        bound.close()


# What connections do is logged by `Connection`; the rest would be written to the terminal.
logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())


class _Server(uvicorn.Server):
    """A server that leaves the process's signals to whoever started it, and tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing is captured."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As it is, and then it is ready."""
        await super().startup(sockets)
        self.ready.set()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small pieces at once only on what says that it is TCP.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"{host}:{port} cannot be listened on ({error.strerror}): "
            "choose another port (`api.port`, `webhooks.port`)."
        ) from error
    bound.setblocking(False)
    return bound
