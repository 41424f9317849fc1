"""What a local server says about the window that it really gives a model."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hermes_agent.host.http import Http
from hermes_agent.providers.route import Route

if TYPE_CHECKING:
    import httpx2

PROBE_SECONDS = 5.0
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.M)

T = TypeVar("T")


class _Running(msgspec.Struct):
    name: str = ""
    model: str = ""
    context_length: int = 0


class _Process(msgspec.Struct):
    models: list[_Running] = []


class _Shown(msgspec.Struct):
    parameters: str = ""
    model_info: dict[str, Any] = {}


async def ollama_window(http: Http, route: Route) -> int | None:
    """Tokens that Ollama allots to the model; None where it does not say.

    A loaded model's `context_length` (`/api/ps`) is what it really has. Before it is loaded: `num_ctx` of its
    Modelfile, otherwise the longest context that it was made for (`/api/show`), which the server may still cut down.
    """
    root = route.base_url.removesuffix("/v1")
    client = http.client(root)
    headers = {"authorization": f"Bearer {route.key}"} if route.key else {}
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            running = _parsed(await client.get(f"{root}/api/ps", headers=headers), _Process)
            shown = await client.post(f"{root}/api/show", json={"model": route.model}, headers=headers)
    except TimeoutError:
        return None
    except http.failures:
        return None
    for one in running.models if running else ():
        if route.model in {one.name, one.model, one.name.removesuffix(":latest")} and one.context_length > 0:
            return one.context_length
    return _written_window(_parsed(shown, _Shown))


def _written_window(shown: _Shown | None) -> int | None:
    if shown is None:
        return None
    set_by_hand = _NUM_CTX.search(shown.parameters)
    if set_by_hand:
        return int(set_by_hand[1])
    lengths = (value for key, value in shown.model_info.items() if key.endswith(".context_length"))
    return next((value for value in lengths if isinstance(value, int) and value > 0), None)


def _parsed(response: httpx2.Response, kind: type[T]) -> T | None:
    if response.status_code != 200:
        return None
    try:
        return msgspec.json.decode(response.content, type=kind)
    except msgspec.MsgspecError:
        return None
