"""HTTP model servers on loopback that answer from a script, record every request, and inject faults."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from dataclasses import field
from typing import Any, Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Usage
from hermes_agent.host.inbound.listener import Listening as Server, serve, serve_in_thread
from hermes_agent.host.inbound.message import Cut, Request, Response
from hermes_agent.providers.demo.openai_wire import OpenAIStyle, OpenAIWire
from hermes_agent.providers.demo.script import Answer, Heard, RequestRefused
from hermes_agent.testing.faults import (
    ErrorEvent,
    Fault,
    Hang,
    Html,
    KeepAlives,
    Malformed,
    MidwayFault,
    Reset,
    Status,
    Truncate,
)
from hermes_agent.testing.scripted import Script, ScriptedModel

DOCUMENT_PIECE = 64  # bytes; what counts as one event where a fault strikes a reply that is not streamed
KEY = "test-key"


class Wire(Protocol):
    """One model API protocol, from the server's side.

    - `asks`: whether a request is a model call;
    - `read` parses it and raises `RequestRefused` for what the real service rejects, with its message;
    - `usage` is called once per exchange, in order;
    - `events` ends with the protocol's final event.
    """

    base: str
    models_path: str
    stream_type: str
    keep_alive: bytes
    malformed: bytes

    def asks(self, request: Request) -> bool: ...

    def key(self, request: Request) -> str: ...

    def read(self, request: Request) -> Heard: ...

    def usage(self, answer: Answer, heard: Heard) -> Usage: ...

    def events(self, answer: Answer, heard: Heard, usage: Usage) -> Iterator[bytes]: ...

    def document(self, answer: Answer, heard: Heard, usage: Usage) -> bytes: ...

    def refusal(self, refused: RequestRefused) -> bytes: ...

    def refusal_headers(self, refused: RequestRefused, /) -> Mapping[str, str]: ...

    def error_event(self, refused: RequestRefused) -> bytes: ...

    def models(self, names: tuple[str, ...]) -> bytes: ...

    def unknown_model(self, name: str) -> RequestRefused: ...

    def wrong_key(self, key: str) -> RequestRefused: ...


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request to a fake model server, and its answer.

    Times are from `time.monotonic`. `events` counts those sent, without the fault's own. `usage` is what the answer
    costs, even if it never arrived, as a provider charges for what it generated (None: nothing). `abandoned`: the
    client disconnected early; `over` is set once nothing more will be sent.
    """

    request: Request
    heard: Heard | None = None
    status: int = 0
    events: int = 0
    ended: float = 0.0
    abandoned: bool = False
    usage: Usage | None = None
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def body(self) -> dict[str, Any]:
        """The parsed JSON of the request."""
        parsed: dict[str, Any] = json.loads(self.request.body)
        return parsed

    def end(self) -> None:
        """Mark the exchange as finished."""
        self.ended = time.monotonic()
        self.over.set()

    @property
    def arrived(self) -> float:
        """When the whole request was read."""
        return self.request.arrived


class ModelServer:
    """HTTP handler that serves one protocol from a script. `exchanges` holds every request in order of arrival,
    including refused ones.

    `keys`: accepted credentials (empty: any); `models`: existing names (empty: any).
    """

    def __init__(
        self,
        wire: Wire,
        model: ScriptedModel,
        *,
        keys: tuple[str, ...] = (KEY,),
        models: tuple[str, ...] = (),
    ) -> None:
        self.exchanges: list[Exchange] = []
        self.url = ""
        self._wire = wire
        self._model = model
        self._keys = keys
        self._models = models

    @property
    def asked(self) -> list[Heard]:
        """The valid model calls."""
        return [exchange.heard for exchange in self.exchanges if exchange.heard is not None]

    def attach(self, server: Server) -> ModelServer:
        """Set `url` from the server that serves it."""
        self.url = server.url + self._wire.base
        return self

    async def handle(self, request: Request) -> Response:
        """Answer one request; the handler to serve."""
        exchange = Exchange(request=request)
        self.exchanges.append(exchange)
        try:
            response = await self._response(request, exchange)
        except RequestRefused as refused:
            response = self._refused(refused)
        exchange.status = response.status
        if isinstance(response.body, bytes):
            exchange.end()
        return response

    async def _response(self, request: Request, exchange: Exchange) -> Response:
        key = self._wire.key(request)
        if self._keys and key not in self._keys:
            raise self._wire.wrong_key(key)
        if (request.method, request.path) == ("GET", self._wire.models_path):
            return _json(self._wire.models(self._models))
        if not self._wire.asks(request):
            raise RequestRefused(f"Unknown request URL: {request.method} {request.path}.", status=404)
        heard = exchange.heard = self._wire.read(request)
        if self._models and heard.model not in self._models:
            raise self._wire.unknown_model(heard.model)
        return await self._answer(self._model.answer(heard), heard, exchange)

    async def _answer(self, step: Answer | Fault, heard: Heard, exchange: Exchange) -> Response:
        match step:
            case Status():
                return self._refused(RequestRefused(step.message, status=step.code, kind=step.kind), step)
            case Html(code=code, body=body):
                return Response(status=code, headers={"content-type": "text/html; charset=utf-8"}, body=body)
            case Answer():
                return self._whole(step, heard, exchange)
            case Hang(headers=False):
                return await self._never(exchange)
            case _:
                return self._streamed(step.reply, heard, exchange, step)

    def _refused(self, refused: RequestRefused, said: Status | None = None) -> Response:
        own = self._wire.refusal_headers(refused) if said is None or not said.body else {}
        body = said.body if said is not None and said.body else self._wire.refusal(refused)
        return _json(body, refused.status, {**own, **(said.headers if said is not None else {})})

    def _whole(self, answer: Answer, heard: Heard, exchange: Exchange) -> Response:
        if heard.stream or answer.pace.first:
            return self._streamed(answer, heard, exchange, None)
        exchange.usage = self._wire.usage(answer, heard)
        return _json(self._wire.document(answer, heard, exchange.usage))

    def _streamed(self, answer: Answer, heard: Heard, exchange: Exchange, fault: MidwayFault | None) -> Response:
        usage = exchange.usage = self._wire.usage(answer, heard)
        if heard.stream:
            events = self._wire.events(answer, heard, usage)
            kind = self._wire.stream_type
        else:
            document = self._wire.document(answer, heard, usage)
            starts = range(0, len(document), DOCUMENT_PIECE)
            events = iter([document[start : start + DOCUMENT_PIECE] for start in starts])
            kind = "application/json"
        body = self._paced(events, answer, exchange, fault)
        return Response(headers={"content-type": kind, "cache-control": "no-cache"}, body=body)

    async def _paced(
        self, events: Iterator[bytes], answer: Answer, exchange: Exchange, fault: MidwayFault | None
    ) -> AsyncGenerator[bytes, None]:
        exchange.abandoned = True
        whole = list(events)
        good = len(whole) if fault is None else fault.after
        try:
            await asyncio.sleep(answer.pace.first)
            async for event in self._sent(whole[:good], answer, exchange):
                yield event
            if fault is not None:
                async for piece in self._broken(fault):
                    yield piece
            if not isinstance(fault, Truncate | ErrorEvent):
                async for event in self._sent(whole[good:], answer, exchange):
                    yield event
            exchange.abandoned = False
        except Cut:
            exchange.abandoned = False
            raise
        finally:
            exchange.end()

    async def _sent(self, events: list[bytes], answer: Answer, exchange: Exchange) -> AsyncGenerator[bytes, None]:
        for event in events:
            if answer.pace.between:
                await asyncio.sleep(answer.pace.between)
            yield event
            exchange.events += 1

    async def _broken(self, fault: MidwayFault) -> AsyncGenerator[bytes, None]:
        match fault:
            case Reset():
                raise Cut(reset=True)
            case Truncate(clean=False):
                raise Cut(reset=False)
            case Truncate():
                return
            case Malformed(data=data):
                yield data or self._wire.malformed
            case ErrorEvent():
                yield self._wire.error_event(RequestRefused(fault.message, status=fault.status, kind=fault.kind))
            case Hang():
                await asyncio.Event().wait()
            case KeepAlives(every=every, count=count):
                sent = 0
                while count is None or sent < count:
                    yield self._wire.keep_alive
                    await asyncio.sleep(every)
                    sent += 1

    async def _never(self, exchange: Exchange) -> Response:
        exchange.abandoned = True
        try:
            await asyncio.Event().wait()
        finally:
            exchange.end()
        return Response()


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(status=status, headers={"content-type": "application/json", **(headers or {})}, body=body)


def scripted(script: Script | ScriptedModel) -> ScriptedModel:
    """Wrap a script as a `ScriptedModel`, unless it is one."""
    return script if isinstance(script, ScriptedModel) else ScriptedModel(script)


def openai_model(
    script: Script | ScriptedModel,
    *,
    keys: tuple[str, ...] = (KEY,),
    models: tuple[str, ...] = (),
    style: OpenAIStyle | None = None,
) -> ModelServer:
    """Build a server for the OpenAI protocol, without serving it."""
    return ModelServer(OpenAIWire(style), scripted(script), keys=keys, models=models)


@contextlib.asynccontextmanager
async def serving(model: ModelServer, port: int = 0) -> AsyncIterator[ModelServer]:
    """Context manager: serve it on this event loop; `model.url` is the client's base URL."""
    async with serve(model.handle, port) as server:
        yield model.attach(server)


@contextlib.contextmanager
def serving_in_thread(model: ModelServer, port: int = 0) -> Iterator[ModelServer]:
    """Context manager: serve it in a thread."""
    with serve_in_thread(model.handle, port) as server:
        yield model.attach(server)
