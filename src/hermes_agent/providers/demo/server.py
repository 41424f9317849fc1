"""Demo server: the scripted model on a loopback socket, and unpacking of the small sample projects."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.providers.demo.openai_wire import OpenAIWire
from hermes_agent.providers.demo.play import PACE, Player, shipped_tasks
from hermes_agent.providers.demo.script import Answer, Heard, Pace, RequestRefused

MODEL = "scripted"
FOLDER = "project"
SUFFIX = ".txt"  # keeps the project's own modules and tests from being taken for this program's


@contextlib.asynccontextmanager
async def demo_server(port: int = 0, pace: Pace = PACE) -> AsyncIterator[str]:
    """Serve the scripted model until the block ends; yields the base URL that a client of the protocol takes."""
    endpoint = DemoEndpoint(Player(shipped_tasks(), pace))
    async with serve(endpoint.handle, port) as server:
        yield f"{server.url}{OpenAIWire.base}"


class DemoEndpoint:
    """HTTP handler of the demo: the model list and chat completions, any key, any model name."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._wire = OpenAIWire()

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        try:
            if (request.method, request.path) == ("GET", OpenAIWire.models_path):
                return _json(self._wire.models((MODEL,)))
            if not self._wire.asks(request):
                raise RequestRefused(f"Unknown request URL: {request.method} {request.path}.", status=404)
            return self._answer(self._wire.read(request))
        except RequestRefused as refused:
            return _json(self._wire.refusal(refused), refused.status)

    def _answer(self, heard: Heard) -> Response:
        answer = self._player.answer(heard)
        if not heard.stream:
            return _json(self._wire.document(answer, heard, self._wire.usage(answer, heard)))
        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        return Response(headers=headers, body=self._streamed(answer, heard))

    async def _streamed(self, answer: Answer, heard: Heard) -> AsyncGenerator[bytes, None]:
        await asyncio.sleep(answer.pace.first)
        for event in self._wire.events(answer, heard, self._wire.usage(answer, heard)):
            yield event
            await asyncio.sleep(answer.pace.between)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(status=status, headers={"content-type": "application/json"}, body=body)


def unpack_project(folder: Path, name: str = FOLDER) -> None:
    """Write the project of that name into `folder`, which is made where it does not exist. Raises `OSError`."""
    _unpack(files(__package__) / name, folder)


def _unpack(source: Traversable, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.is_dir():
            _unpack(entry, target / entry.name)
        elif entry.name.endswith(SUFFIX):
            (target / entry.name.removesuffix(SUFFIX)).write_bytes(entry.read_bytes())
