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


class _Generation(msgspec.Struct):
    n_ctx: int = 0


class _Props(msgspec.Struct):
    default_generation_settings: _Generation | None = None


class _Listed(msgspec.Struct):
    id: str = ""
    root: str | None = None
    max_model_len: int | None = None
    state: str = ""
    loaded_context_length: int | None = None
    max_context_length: int | None = None


class _List(msgspec.Struct):
    data: list[_Listed] = []


async def ollama_window(http: Http, route: Route) -> int | None:
    """Tokens that Ollama allots to the model; None where it does not say.

    A loaded model's `context_length` (`/api/ps`) is what it really has. Before it is loaded: `num_ctx` of its
    Modelfile, otherwise the longest context that it was made for (`/api/show`), which the server may still cut down.
    """
    running = await _asked(http, route, "/api/ps", _Process)
    for one in running.models if running else ():
        if route.model in {one.name, one.model, one.name.removesuffix(":latest")} and one.context_length > 0:
            return one.context_length
    return _written_window(await _asked(http, route, "/api/show", _Shown, model=route.model))


async def llamacpp_window(http: Http, route: Route) -> int | None:
    """Tokens of a slot of llama.cpp's server: `default_generation_settings.n_ctx` of `/props`; None where it does not
    say."""
    props = await _asked(http, route, "/props", _Props)
    generation = props.default_generation_settings if props else None
    return generation.n_ctx if generation and generation.n_ctx > 0 else None


async def vllm_window(http: Http, route: Route) -> int | None:
    """Tokens that a vLLM server takes for the model: `max_model_len` of `/v1/models`; None where it does not say."""
    listed = await _asked(http, route, "/v1/models", _List)
    for one in listed.data if listed else ():
        if route.model in {one.id, one.root} and one.max_model_len:
            return one.max_model_len
    return None


async def lmstudio_window(http: Http, route: Route) -> int | None:
    """Tokens that LM Studio gives the model (`/api/v0/models`): `loaded_context_length` once it is loaded, until then
    the most that it can have; None where it does not say."""
    listed = await _asked(http, route, "/api/v0/models", _List)
    for one in listed.data if listed else ():
        if one.id == route.model:
            return one.loaded_context_length or one.max_context_length
    return None


async def _asked(http: Http, route: Route, path: str, kind: type[T], **body: str) -> T | None:
    """The server's answer to a question without `/v1` before its path; None where it is not there or says something
    else. With a body it is posted."""
    root = route.base_url.partition("?")[0].removesuffix("/v1")
    client = http.client(root)
    headers = route.key_header("authorization")
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            if body:
                return _parsed(await client.post(root + path, json=body, headers=headers), kind)
            return _parsed(await client.get(root + path, headers=headers), kind)
    except TimeoutError:
        return None
    except http.failures:
        return None


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
