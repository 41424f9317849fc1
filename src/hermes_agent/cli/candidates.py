"""The models that could answer here: what the settings, the keys and the servers of this machine offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hermes_agent.app.models.routes import model_settings, sign_ins
from hermes_agent.cli.offers import is_ready
from hermes_agent.cli.routes import key_name
from hermes_agent.cli.surface import Surface
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.http import Http
from hermes_agent.providers.local import Place, look_around
from hermes_agent.providers.route import Route, choose, load_vendor
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS

CONFIGURED = "as configured"
BUILT_IN = "built in and scripted, no real model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model that could answer: `model` as it is written into the settings, with an address where it needs one, and
    why it is offered. `key` is one that is not kept yet, and the name to keep it under."""

    model: str
    why: str
    base_url: str = ""
    key_name: str = ""
    key: str = ""

    def route(self, surface: Surface) -> Route:
        """The way to it, whatever the settings say now. Raises `NoModel`."""

        def secret(name: str) -> str:
            return self.key if self.key and name == self.key_name else surface.secrets.get(name)

        return choose(self.settings(surface), secret, surface.loaded.value.models, sign_ins(surface.secrets))

    def settings(self, surface: Surface) -> ModelSettings:
        """The model settings with this candidate chosen."""
        if self.why == CONFIGURED:
            return model_settings(surface.loaded)
        written: ModelSettings = surface.loaded.value.model
        return replace(written, default=self.model, base_url=self.base_url, provider="")


async def candidates(surface: Surface, places: Sequence[Place]) -> list[Candidate]:
    """What is there: the configured model, vendors with a key, servers on this machine, and what is built in."""
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
    http = Http()
    try:
        servers = await look_around(http, places)
    finally:
        await http.close()
    for server in servers:
        own = load_vendor(server.place.vendor).base_url == server.place.base_url
        where = f"{server.place.title} at {server.place.base_url}"
        address = "" if own else server.place.base_url
        found += [
            Candidate(model=f"{server.place.vendor}/{name}", why=where, base_url=address) for name in server.models
        ]
    found += [Candidate(model=f"{each.name}/{each.default_model}", why=BUILT_IN) for each in vendors() if each.server]
    first = {each.model: each for each in reversed(found)}
    return [each for each in found if first[each.model] is each]


def vendors() -> list[Vendor]:
    """All vendors, in the order of first choice."""
    return [load_vendor(name) for name in VENDORS]


def with_key(vendor: Vendor, key: str) -> Candidate:
    """A vendor's model with a key that a person just gave."""
    name = vendor.key_names[0]
    return Candidate(model=f"{vendor.name}/{vendor.default_model}", why="your key", key_name=name, key=key)
