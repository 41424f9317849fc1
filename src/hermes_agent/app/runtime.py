"""A whole system at work on one home: what surfaces and commands are handed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.floor import BuildAgent
from hermes_agent.app.front import Hermes
from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Principal
from hermes_agent.core.model import Model, ToolSchema
from hermes_agent.core.tool import Quarantined
from hermes_agent.host.config import Loaded
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets
from hermes_agent.memory.notes import Notes
from hermes_agent.providers.broker import Ledger
from hermes_agent.providers.dialect import Dialect
from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.providers.mixture.settings import MixtureSettings
from hermes_agent.providers.route import KeySource, Route, SignIns, choose, has_own_address, vendor_of
from hermes_agent.providers.routing.credentials import by_name
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.tool_schemas import fitted
from hermes_agent.providers.vendor import Vendor
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from hermes_agent.tools.permission.unasked import Unasked
from hermes_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from hermes_agent.app.hooks.hooks import Hooks


class Auxiliary(Protocol):
    """Gives the model that works for a session for a purpose, in the ledger under that purpose: of a run where its
    `ledger` is given, else of its own. Behind it stands the model that answers, unless it is wanted `alone`. Raises
    `NoModel`."""

    def __call__(
        self, purpose: Purpose, record: Session, ledger: Ledger | None = None, *, alone: bool = False
    ) -> Awaitable[Model]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The parts that `open_runtime` joined. `owner` is the person of this machine; `model` is what they chose for this
    process (empty: as configured). `quarantined` are tools that could not be offered, `unasked` the runs without
    questions; `build` makes the agent of a session under its journal. `is_owner` knows
    the principals whose `notes` are the home's own; `auxiliary` gives the model that works for a purpose; `settled`
    returns when no run is under way, and nothing beside them; `hooks` are the person's own programs that are told of
    events (None: there are none); `restart` has this process begin again (None: it cannot)."""

    home: Home
    loaded: Loaded[Settings]
    secrets: Secrets
    store: Store
    hermes: Hermes
    toolbox: Toolbox
    quarantined: tuple[Quarantined, ...]
    unasked: Unasked
    clock: Clock
    ids: Ids
    owner: Principal
    build: BuildAgent
    skills: Skills
    notes: Notes
    is_owner: Callable[[str], bool]
    learner: Learner
    auxiliary: Auxiliary
    settled: Callable[[], Coroutine[Any, Any, None]]
    model: str = ""
    hooks: Hooks | None = None
    restart: Callable[[], None] | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.value

    def route(self, model: str = "") -> Route:
        """The route to a model: the one named, else this process's, else the configured one. Raises `NoModel`."""
        return route_of(self.loaded, self.secrets, model or self.model)

    def not_offered(self, model: str = "") -> tuple[Quarantined, ...]:
        """The tools that a model is not offered: those that could not be made, and those that its dialect cannot
        take. Where no model is chosen yet, the former alone."""
        try:
            return (*self.quarantined, *refused_by(self.route(model), self.toolbox.offered))
        except NoModel:
            return self.quarantined


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
        keeper = late("hermes_agent.providers.signin.keeper:Keeper")(secrets.home, SystemClock(), secrets.get)
        source: KeySource | None = keeper.source(vendor)
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
