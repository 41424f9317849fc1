"""Models that a person can choose: lists those of the catalogue and the settings with what is known of each, and finds
the route and API key of a chosen one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import TypeVar

from hermes_agent.app.models import model_settings, route_of, sign_ins
from hermes_agent.app.operations.models import (
    Offer as Offer,
    is_ready as is_ready,
    key_name as key_name,
    offers_of as offers_of,
)
from hermes_agent.cli.surface import Surface
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.host.http import Http
from hermes_agent.providers.catalog import find, known_models
from hermes_agent.providers.local import Listing, Place, list_models, look_around, served_models
from hermes_agent.providers.route import Route, choose, load_vendor, vendor_of
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS

T = TypeVar("T")
CLOSE = 0.8
"""How like a known name another one is that was probably mistyped."""


def route_to(surface: Surface, name: str = "") -> Route:
    """The route of the named or configured model. Raises `NoModel`."""
    return route_of(surface.loaded, surface.secrets, name)


def has_model(surface: Surface) -> bool:
    """Whether the configured model could be asked."""
    try:
        return bool(route_to(surface))
    except NoModel:
        return False


def route_without(surface: Surface, name: str = "") -> tuple[Route, str]:
    """As `route_to`, also for a model without a key, with a sentence that says so (else empty). Raises `NoModel` if
    more is missing."""
    try:
        return route_to(surface, name), ""
    except NoModel as error:
        settings = model_settings(surface.loaded, name)
        vendor = VENDORS.get(vendor_of(settings))
        if not settings.default or vendor is None:
            raise
        names = load_vendor(vendor_of(settings)).key_names

        def secret(asked: str) -> str:
            return surface.secrets.get(asked) or ("none-yet" if asked in names else "")

        try:
            route = choose(settings, secret, surface.loaded.value.models)
        except NoModel:
            raise error from None
        return replace(route, key=""), str(error)


def refuse_typo(surface: Surface, route: Route) -> None:
    """Raise `NoModel` for an unknown name that resembles a known one."""
    known = [
        each for each in (*known_models(), *surface.loaded.value.models) if each.startswith(f"{route.vendor.name}/")
    ]
    if route.vendor.mixes or route.name in known or find(route.vendor, route.model) is not None:
        return
    near = get_close_matches(route.name, known, n=3, cutoff=CLOSE)
    if route.vendor.server and known:
        near = near or known
    if near:
        raise NoModel(
            f"The catalogue knows no `{route.name}`. Did you mean {' or '.join(f'`{each}`' for each in near)}? "
            "`--force` takes it as it is."
        )


def single(surface: Surface, name: str) -> Route:
    """The route of a single model; raises `NoModel`, also for a mixture."""
    route = route_to(surface, name)
    if route.vendor.mixes:
        raise NoModel(f"{route.name} is a mixture, which only answers conversations: name a single model here.")
    return route


def searched(offers: Sequence[Offer], text: str) -> list[Offer]:
    """Offers whose name contains every word; `images`, `files` and `ready` filter by ability."""
    words = text.lower().split()
    return [each for each in offers if all(_fits(each, word) for word in words)]


def _fits(offer: Offer, word: str) -> bool:
    match word:
        case "images":
            return offer.images
        case "files":
            return offer.files
        case "ready":
            return offer.ready
        case _:
            return word in offer.model.lower()


CONFIGURED = "as configured"
BUILT_IN = "built in and scripted, no real model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model that `hermes setup` could choose: its name as written to the settings, an address if needed, and why
    it is offered. `key` is a key not saved yet, `key_name` its name."""

    model: str
    why: str
    base_url: str = ""
    key_name: str = ""
    key: str = ""

    @property
    def is_scripted(self) -> bool:
        """Whether it is the built-in model, which knows nothing."""
        vendor = VENDORS.get(self.model.partition("/")[0])
        return vendor is not None and bool(load_vendor(self.model.partition("/")[0]).server)

    def route(self, surface: Surface) -> Route:
        """Its route, independent of the saved settings. Raises `NoModel`."""

        def secret(name: str) -> str:
            return self.key if self.key and name == self.key_name else surface.secrets.get(name)

        return choose(self.settings(surface), secret, surface.loaded.value.models, sign_ins(surface.secrets))

    def settings(self, surface: Surface) -> ModelSettings:
        """Model settings with this candidate chosen."""
        if self.why == CONFIGURED:
            return model_settings(surface.loaded)
        written: ModelSettings = surface.loaded.value.model
        return replace(written, default=self.model, base_url=self.base_url, provider="")


async def candidates(surface: Surface, places: Sequence[Place]) -> list[Candidate]:
    """The available models: the configured one, vendors with a key, local servers, and last the built-in demo model."""
    found = []
    configured = model_settings(surface.loaded)
    if configured.default:
        found.append(Candidate(model=configured.default, why=CONFIGURED, base_url=configured.base_url))
    for vendor in vendors():
        name = key_name(surface, vendor)
        if name and vendor.default_model:
            why = f"{name} is in the {'environment' if surface.secrets.source(name) == 'environment' else '.env file'}"
            found.append(Candidate(model=f"{vendor.name}/{vendor.default_model}", why=why))
    found += [
        Candidate(model=f"{each.name}/{each.default_model}", why="you are signed in")
        for each in vendors()
        if each.sign_in and not key_name(surface, each) and is_ready(surface, each)
    ]
    for server in await over_http(lambda http: look_around(http, places)):
        own = load_vendor(server.place.vendor).base_url == server.place.base_url
        where = f"{server.place.title} at {server.place.base_url}"
        address = "" if own else server.place.base_url
        found += [
            Candidate(model=f"{server.place.vendor}/{name}", why=where, base_url=address) for name in server.models
        ]
    found += [Candidate(model=f"{each.name}/{each.default_model}", why=BUILT_IN) for each in vendors() if each.server]
    first = {each.model: each for each in reversed(found)}
    return sorted((each for each in found if first[each.model] is each), key=lambda each: each.is_scripted)


async def ask_server(address: str, key: str) -> Listing:
    """Ask a server for its models, as a program with this key (empty: none)."""
    return await over_http(lambda http: list_models(http, address, key))


def all_offers(surface: Surface, vendor: str = "") -> list[Offer]:
    """The models that could be chosen, first those of the configured server if it is one that needs no key."""
    with suppress(NoModel):
        route = route_to(surface)
        if not route.vendor.needs_key and vendor in ("", route.vendor.name):
            found = asyncio.run(over_http(lambda http: served_models(http, route)))
            return offers_of(surface, vendor, [f"{route.vendor.name}/{name}" for name in found])
    return offers_of(surface, vendor)


async def over_http(act: Callable[[Http], Awaitable[T]]) -> T:
    """Do something with an HTTP client of its own."""
    http = Http()
    try:
        return await act(http)
    finally:
        await http.close()


def vendors() -> list[Vendor]:
    """All vendors, in order of preference."""
    return [load_vendor(name) for name in VENDORS]


def with_key(vendor: Vendor, key: str) -> Candidate:
    """A candidate for a vendor with a key just entered."""
    name = vendor.key_names[0]
    return Candidate(model=f"{vendor.name}/{vendor.default_model}", why="your key", key_name=name, key=key)
