"""A whole system at work on one home: what surfaces and commands are handed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hermes_agent.app.front import Hermes
from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import Clock
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Principal
from hermes_agent.host.config import Loaded
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.route import Route, choose, has_own_address, vendor_of
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.store.database import Store
from hermes_agent.tools.schema import Quarantined
from hermes_agent.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The parts that `open_runtime` joined. `owner` is the person of this machine; `model` is what they chose for this
    process (empty: as configured). `quarantined` are tools that could not be offered."""

    home: Home
    loaded: Loaded[Settings]
    secrets: Secrets
    store: Store
    hermes: Hermes
    toolbox: Toolbox
    quarantined: tuple[Quarantined, ...]
    clock: Clock
    ids: Ids
    owner: Principal
    model: str = ""

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.value

    def route(self, model: str = "") -> Route:
        """The route to a model: the one named, else this process's, else the configured one. Raises `NoModel`."""
        return route_of(self.loaded, self.secrets, model or self.model)


def route_of(loaded: Loaded[Settings], secrets: Secrets, model: str = "") -> Route:
    """The route that a name, or the settings, lead to. Raises `NoModel`."""
    return choose(model_settings(loaded, model), secrets.get, loaded.value.models)


def model_settings(loaded: Loaded[Settings], model: str = "") -> ModelSettings:
    """The settings with which a model is asked: the one named, else the one in force. Raises `NoModel`.

    `model.base_url` is where the model is that config.yaml names: another vendor that has an address of its own, be it
    named here or in HERMES_MODEL, is asked there, so that its key goes nowhere else.
    """
    chosen = loaded.value.model
    written = loaded.overridden.get("model.default", chosen.default) or ""
    asked = replace(chosen, default=model or chosen.default)
    if not chosen.base_url or asked.default == written or not asked.default:
        return asked
    vendor = vendor_of(asked)
    elsewhere = has_own_address(vendor) and vendor != vendor_of(replace(chosen, default=str(written)))
    return replace(asked, base_url="") if elsewhere else asked
