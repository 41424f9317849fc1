"""Discovery of model servers on this machine, on their usual ports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.http import Http

LOOK_SECONDS = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The usual address of a kind of server, and the vendor whose facts fit it."""

    title: str
    vendor: str
    base_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A server that answered, with its model names."""

    place: Place
    models: tuple[str, ...]


USUAL_PLACES = (
    Place(title="Ollama", vendor="ollama", base_url="http://127.0.0.1:11434/v1"),
    Place(title="llama.cpp", vendor="llamacpp", base_url="http://127.0.0.1:8080/v1"),
    Place(title="vLLM", vendor="vllm", base_url="http://127.0.0.1:8000/v1"),
    Place(title="LM Studio", vendor="lmstudio", base_url="http://127.0.0.1:1234/v1"),
)


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def look_around(http: Http, places: Sequence[Place] = USUAL_PLACES) -> list[LocalServer]:
    """The servers that list their models within 300 ms, asked in parallel, in the order of `places`."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_query(http, place)) for place in places]
    return [found for task in tasks if (found := task.result()) is not None]


async def _query(http: Http, place: Place) -> LocalServer | None:
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            response = await http.client(place.base_url).get(f"{place.base_url}/models")
        models = msgspec.json.decode(response.content, type=_Models)
    except (TimeoutError, msgspec.MsgspecError):
        return None
    except http.failures:
        return None
    return LocalServer(place=place, models=tuple(model.id for model in models.data))
