"""The API on its socket: the table of endpoints mounted on the listener, from start to end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache

from hermes_agent.api import chat, meta, responses, runs, sessions
from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, EndpointApp, Nothing
from hermes_agent.api.keys import Keys
from hermes_agent.api.metrics import Metrics
from hermes_agent.api.openapi import description
from hermes_agent.api.problems import JSON, answer_of
from hermes_agent.api.service import AgentService
from hermes_agent.app.api_settings import DRAIN_SECONDS
from hermes_agent.app.system import System
from hermes_agent.host.inbound.guard import SAFE, check_names
from hermes_agent.host.inbound.listener import Listening, Routes, listen
from hermes_agent.host.inbound.message import Handler, Policy, Request, Response
from hermes_agent.host.inbound.sse import written


async def describe(state: AppState, call: Call[Nothing, Nothing]) -> Answer:  # noqa: ARG001  an endpoint's shape
    """The API's own description."""
    return Response(headers={"content-type": JSON}, body=described())


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


@asynccontextmanager
async def api_server(runtime: System, keys: Keys, metrics: Metrics) -> AsyncIterator[Listening]:
    """The API of this system, as its settings say, until the block ends. Raises `OSError`."""
    settings, routes = runtime.settings.api, Routes()
    state = AppState(runtime=runtime, keys=keys, service=AgentService(runtime), metrics=metrics)
    for each in ENDPOINTS:
        routes.mount(each.path, each.method, EndpointApp(state, each))

    async def guarded(request: Request) -> Response:
        check_names(request, (state.settings.host, *state.settings.allowed_hosts))
        return await routes(request)

    async with counted(guarded, settings.host, settings.port, metrics) as place:
        try:
            yield place
        finally:
            state.ending.set()


def counted(handler: Handler, host: str, port: int, metrics: Metrics) -> AbstractAsyncContextManager[Listening]:
    """Serve a handler, counted, until the block ends; then answers under way are waited for a little. Raises
    `OSError`."""

    def answered(request: Request, status: int) -> None:
        metrics.answered(request.method, request.route, status, time.monotonic() - request.arrived)

    return listen(
        handler, host, port, Policy(drain_seconds=DRAIN_SECONDS, headers=SAFE, refuse=answer_of, answered=answered)
    )
