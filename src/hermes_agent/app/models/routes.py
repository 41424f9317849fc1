"""Routes to models: where a name, or the settings, lead to, and with which key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import NoModel
from hermes_agent.core.model import ToolSchema
from hermes_agent.core.tool import Quarantined
from hermes_agent.host.config import Loaded
from hermes_agent.host.late import late
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.dialect import Dialect
from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.providers.route import KeySource, Route, SignIns, choose, has_own_address, vendor_of
from hermes_agent.providers.routing.chain import by_name
from hermes_agent.providers.settings import MixtureSettings, ModelSettings
from hermes_agent.providers.tool_schemas import fitted
from hermes_agent.providers.vendor import Vendor


def refused_by(route: Route, tools: Iterable[ToolSchema]) -> list[Quarantined]:
    """The tools that the dialect of a route cannot be offered, with the reason."""
    dialect: Dialect = late(DIALECTS[route.dialect])
    return [Quarantined(name=tool.name, reason=tool.reason) for tool in fitted(tools, dialect.tools)[1]]


def route_of(loaded: Loaded[Settings], secrets: Secrets, model: str = "") -> Route:
    """The route that a name, or the settings, lead to. Raises `NoModel`."""
    keys = by_name(secrets.get, loaded.value.credentials)
    route = choose(model_settings(loaded, model), keys, loaded.value.models, sign_ins(secrets))
    if route.vendor.mixes:
        return _mixed(route, loaded, secrets)
    return replace(route, cache=secrets.home.cache)


def _mixed(route: Route, loaded: Loaded[Settings], secrets: Secrets) -> Route:
    """The route to a mixture: with the facts of the model that answers. Raises `NoModel`."""
    mixtures = loaded.value.moa
    mixture = mixtures.get(route.model)
    if mixture is None:
        near = late("difflib").get_close_matches(route.model, mixtures, n=1)
        guess = f" Did you mean `{near[0]}`?" if near else ""
        raise NoModel(f"There is no mixture `{route.model}` (section `moa` of config.yaml).{guess}")
    answers = aggregator_of(mixture)
    if not mixture.members or vendor_of(replace(loaded.value.model, default=answers)) == route.vendor.name:
        raise NoModel(f"`moa.{route.model}` needs `members`, and as `aggregator` a single model: vendor/model.")
    single = route_of(loaded, secrets, answers)
    return replace(route, base_url="", facts=replace(single.facts, dialect=single.dialect, price=None))


def aggregator_of(mixture: MixtureSettings) -> str:
    """The name of the model of a mixture that answers."""
    return mixture.aggregator or mixture.members[0]


def sign_ins(secrets: Secrets) -> SignIns:
    """The sign-ins of the home of these secrets; what they need is loaded when a vendor has a way to sign in."""

    def source_of(vendor: Vendor) -> KeySource | None:
        renewal = late("hermes_agent.providers.signin.token_refresh:TokenRefresh")(
            secrets.home, SystemClock(), secrets.get
        )
        source: KeySource | None = renewal.source(vendor)
        return source

    return source_of


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
