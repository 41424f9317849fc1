"""Asks local model servers for the context window that a model really gets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import read_small, write_private
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.providers.route import Route

if TYPE_CHECKING:
    import httpx2

PROBE_SECONDS = 5.0
REMEMBERED_SECONDS = 3600.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Context window in tokens; `loaded` False: the maximum, once the model is loaded."""

    tokens: int
    loaded: bool = True


class _Remembered(msgspec.Struct):
    tokens: int
    at: float


async def real_window(http: Http, route: Route, now: Callable[[], float] | None = None) -> int | None:
    """The window that the route's server really gives the model; None where unknown.

    For a loaded model it is cached for an hour, by address and model, for all processes of the home.
    """
    moment = now() if now is not None else SystemClock().now()
    name = f"{route.base_url} {route.model}"
    file = None if route.cache is None else route.cache / "windows.json"
    known = {} if file is None else await asyncio.to_thread(_read, file, moment)
    if name in known:
        return known[name].tokens
    window: Window | None = await late(route.vendor.window_probe)(http, route)
    if window is not None and window.loaded and file is not None:
        known[name] = _Remembered(tokens=window.tokens, at=moment)
        await asyncio.to_thread(_write, file, known)
    return None if window is None else window.tokens


def _read(file: Path, now: float) -> dict[str, _Remembered]:
    """What is remembered and not too old; nothing where the file is damaged or there is none."""
    try:
        kept = msgspec.json.decode(read_small(file) or b"{}", type=dict[str, _Remembered])
    except (HomeError, msgspec.MsgspecError):
        return {}
    return {name: one for name, one in kept.items() if 0 <= now - one.at < REMEMBERED_SECONDS}


def _write(file: Path, known: dict[str, _Remembered]) -> None:
    with suppress(HomeError):  # a cache that cannot be written is asked for again
        write_private(file, msgspec.json.encode(known), durable=False)


async def ollama_window(http: Http, route: Route) -> Window | None:
    """Tokens that Ollama allots to the model; None where unknown.

    For a loaded model its `context_length` (`/api/ps`). Before: `num_ctx` of its Modelfile, otherwise the longest
    context that it was made for (`/api/show`), which the server may still reduce.
    """
    running = await _asked(http, route, "/api/ps", _Process)
    for one in running.models if running else ():
        if route.model in {one.name, one.model, one.name.removesuffix(":latest")} and one.context_length > 0:
            return Window(tokens=one.context_length)
    written = _written_window(await _asked(http, route, "/api/show", _Shown, model=route.model))
    return None if written is None else Window(tokens=written, loaded=False)


async def llamacpp_window(http: Http, route: Route) -> Window | None:
    """Tokens of a slot of llama.cpp's server: `default_generation_settings.n_ctx` of `/props`; None where it does not
    say."""
    props = await _asked(http, route, "/props", _Props)
    generation = props.default_generation_settings if props else None
    return Window(tokens=generation.n_ctx) if generation and generation.n_ctx > 0 else None


async def vllm_window(http: Http, route: Route) -> Window | None:
    """Window of a vLLM server: `max_model_len` of `/v1/models`; None where unknown."""
    listed = await _asked(http, route, "/v1/models", _List)
    for one in listed.data if listed else ():
        if route.model in {one.id, one.root} and one.max_model_len:
            return Window(tokens=one.max_model_len)
    return None


async def lmstudio_window(http: Http, route: Route) -> Window | None:
    """Window of LM Studio (`/api/v0/models`): `loaded_context_length` once the model is loaded, until then its
    maximum; None where unknown."""
    listed = await _asked(http, route, "/api/v0/models", _List)
    for one in listed.data if listed else ():
        if one.id == route.model:
            tokens = one.loaded_context_length or one.max_context_length
            return Window(tokens=tokens, loaded=bool(one.loaded_context_length)) if tokens else None
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
