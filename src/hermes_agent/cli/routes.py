"""Resolves the model that a command names, and its key."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from hermes_agent.app.models import model_settings, route_of
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import NoModel
from hermes_agent.providers.catalog import find, known_models
from hermes_agent.providers.route import Route, choose, load_vendor, vendor_of
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS

CLOSE = 0.8
"""How like a known name another one is that was probably mistyped."""


def route_to(surface: Surface, name: str = "") -> Route:
    """The route of the named or configured model. Raises `NoModel`."""
    return route_of(surface.loaded, surface.secrets, name)


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


def key_name(surface: Surface, vendor: Vendor) -> str:
    """The name under which the vendor's key is set; empty if it is not."""
    return next((name for name in vendor.key_names if surface.secrets.get(name)), "")


def single(surface: Surface, name: str) -> Route:
    """The route of a single model; raises `NoModel`, also for a mixture."""
    route = route_to(surface, name)
    if route.vendor.mixes:
        raise NoModel(f"{route.name} is a mixture, which only answers conversations: name a single model here.")
    return route
