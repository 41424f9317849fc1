"""Which model a command means, and which key there is for it."""

from __future__ import annotations

from hermes_agent.app.models.routes import route_of
from hermes_agent.cli.surface import Surface
from hermes_agent.providers.route import Route
from hermes_agent.providers.vendor import Vendor


def route_to(surface: Surface, name: str = "") -> Route:
    """The route to the named model, otherwise to the configured one. Raises `NoModel`."""
    return route_of(surface.loaded, surface.secrets, name)


def key_name(surface: Surface, vendor: Vendor) -> str:
    """The name under which this vendor's key is there, empty where it is not."""
    return next((name for name in vendor.key_names if surface.secrets.get(name)), "")
