"""Model servers on this machine: found on their usual ports, and the window that one really gives a model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.providers.route import Route

LOOK_SECONDS = 0.3
NO_BODY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The usual address of one kind of local model server, and the vendor whose facts fit it."""

    title: str
    vendor: str
    base_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A model server that answered on this machine, with its model names."""

    place: Place
    models: tuple[str, ...]


USUAL_PLACES = (
    Place(title="Ollama", vendor="ollama", base_url="http://127.0.0.1:11434/v1"),
    Place(title="llama.cpp", vendor="llamacpp", base_url="http://127.0.0.1:8080/v1"),
    Place(title="vLLM", vendor="vllm", base_url="http://127.0.0.1:8000/v1"),
    Place(title="LM Studio", vendor="lmstudio", base_url="http://127.0.0.1:1234/v1"),
)


async def look_around(http: Http, places: Sequence[Place] = USUAL_PLACES) -> list[LocalServer]:
    """The servers that list their models within 300 ms, asked in parallel, in the order of `places`."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_query(http, place)) for place in places]
    return [found for task in tasks if (found := task.result()) is not None]


async def _query(http: Http, place: Place) -> LocalServer | None:
    found = await _answered(http, f"{place.base_url}/models", LOOK_SECONDS)
    return LocalServer(place=place, models=_names(found)) if isinstance(found.get("data"), list) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a server said when it was asked for its models: the HTTP `status` (0: nothing came, `why` says how), and the
    names that it listed."""

    status: int = 0
    models: tuple[str, ...] = ()
    why: str = ""


LISTING_SECONDS = 5.0
ENDPOINTS = ("/chat/completions", "/completions", "/models")


def server_address(text: str) -> str:
    """The base address of an OpenAI-compatible server as a person types it, completed: the scheme is https only for
    names of the internet, the path `/v1` where there is none."""
    scheme, _, rest = text.strip().rstrip("/").rpartition("://")
    for endpoint in ENDPOINTS:
        rest = rest.removesuffix(endpoint)
    host, _, path = rest.partition("/")
    name = host.partition(":")[0]
    is_near = "." not in name or name.endswith(".local") or name.replace(".", "").isdecimal()
    return f"{scheme or ('http' if is_near else 'https')}://{host}/{path or 'v1'}"


async def list_models(http: Http, base_url: str, key: str, seconds: float = LISTING_SECONDS) -> Listing:
    """Ask a server for its models, with this key (empty: without)."""
    url, headers = f"{base_url}/models", {"authorization": f"Bearer {key}"} if key else {}
    try:
        async with asyncio.timeout(seconds):
            response = await http.client(url).get(url, headers=headers)
    except TimeoutError:
        return Listing(why=f"did not answer within {seconds:g} s")
    except http.failures as error:
        return Listing(why=f"could not be reached ({str(error) or type(error).__name__})")
    names: tuple[str, ...] = ()
    with suppress(msgspec.MsgspecError):
        names = _names(msgspec.json.decode(response.content, type=dict[str, Any]))
    return Listing(status=response.status_code, models=names)


async def served_models(http: Http, route: Route, seconds: float = 3.0) -> tuple[str, ...]:
    """The names of the models that the route's own server lists; none where it does not answer in time."""
    if not route.base_url:
        return ()
    url = f"{route.base_url.partition('?')[0].rstrip('/')}/models"
    return _names(await _answered(http, url, seconds, headers=route.key_header("authorization")))


PROBE_SECONDS = 5.0
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.M)


async def real_window(http: Http, route: Route) -> int | None:
    """The window that the route's server really gives the model, in tokens; None where unknown."""
    window: int | None = await late(route.vendor.window_probe)(http, route)
    return window


async def ollama_window(http: Http, route: Route) -> int | None:
    """Tokens that Ollama allots to the model; None where unknown.

    For a loaded model its `context_length` (`/api/ps`). Before: `num_ctx` of its Modelfile, otherwise the longest
    context that it was made for (`/api/show`), which the server may still reduce.
    """
    for one in _rows(await _asked(http, route, "/api/ps"), "models"):
        name, tokens = str(one.get("name", "")), _count(one.get("context_length"))
        if tokens and route.model in (name, one.get("model"), name.removesuffix(":latest")):
            return tokens
    return _written_window(await _asked(http, route, "/api/show", model=route.model))


async def llamacpp_window(http: Http, route: Route) -> int | None:
    """Tokens of a slot of llama.cpp's server: `default_generation_settings.n_ctx` of `/props`; None where it does not
    say."""
    settings = (await _asked(http, route, "/props")).get("default_generation_settings")
    return (_count(settings.get("n_ctx")) or None) if isinstance(settings, dict) else None


async def vllm_window(http: Http, route: Route) -> int | None:
    """Window of a vLLM server: `max_model_len` of `/v1/models`; None where unknown."""
    for one in _rows(await _asked(http, route, "/v1/models"), "data"):
        if route.model in (one.get("id"), one.get("root")) and (tokens := _count(one.get("max_model_len"))):
            return tokens
    return None


async def lmstudio_window(http: Http, route: Route) -> int | None:
    """Window of LM Studio (`/api/v0/models`): `loaded_context_length` once the model is loaded, until then its
    maximum; None where unknown."""
    for one in _rows(await _asked(http, route, "/api/v0/models"), "data"):
        if one.get("id") == route.model:
            return _count(one.get("loaded_context_length")) or _count(one.get("max_context_length")) or None
    return None


async def _asked(http: Http, route: Route, path: str, **body: str) -> Mapping[str, Any]:
    """What the server answers to a question without `/v1` before its path; with a body it is posted."""
    url = route.base_url.partition("?")[0].removesuffix("/v1") + path
    return await _answered(http, url, PROBE_SECONDS, body, route.key_header("authorization"))


async def _answered(
    http: Http, url: str, seconds: float, body: Mapping[str, str] = NO_BODY, headers: Mapping[str, str] = NO_BODY
) -> Mapping[str, Any]:
    """The object that a server answers; empty where it is not there, or says something else."""
    try:
        async with asyncio.timeout(seconds):
            method = "POST" if body else "GET"
            response = await http.client(url).request(method, url, json=body or None, headers=headers)
        return msgspec.json.decode(response.content, type=dict[str, Any]) if response.status_code == 200 else {}
    except (TimeoutError, msgspec.MsgspecError):
        return {}
    except http.failures:
        return {}


def _names(found: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the models that a server lists."""
    return tuple(str(row["id"]) for row in _rows(found, "data") if "id" in row)


def _rows(found: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = found.get(name)
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []


def _count(value: object) -> int:
    """A number of tokens; 0 for anything else."""
    return value if isinstance(value, int) and value > 0 else 0


def _written_window(shown: Mapping[str, Any]) -> int | None:
    if set_by_hand := _NUM_CTX.search(str(shown.get("parameters", ""))):
        return int(set_by_hand[1])
    facts = shown.get("model_info")
    lengths = [facts[key] for key in facts if key.endswith(".context_length")] if isinstance(facts, dict) else []
    return next(filter(None, map(_count, lengths)), None)
