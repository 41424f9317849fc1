"""Model resolution: routes of model names, brokers with fallbacks and mixtures, and cool-downs kept in the store."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import field, replace
from difflib import get_close_matches
from typing import TypeAlias

from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.core.messages import ToolSchema
from hermes_agent.core.tool import Quarantined
from hermes_agent.host.config import Loaded
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.broker import Broker, Ledger
from hermes_agent.providers.dialects import dialect_of
from hermes_agent.providers.mixture import Mixture
from hermes_agent.providers.route import KeySource, Route, SignIns, choose, has_own_address, vendor_of
from hermes_agent.providers.routing.chain import Chain, CoolDowns, Leg, Use, by_name, leg_of
from hermes_agent.providers.settings import MixtureSettings, ModelSettings
from hermes_agent.providers.tool_schemas import fitted
from hermes_agent.providers.vendor import Vendor
from hermes_agent.store.cooldowns import CoolDown
from hermes_agent.store.database import Store


def refused_by(route: Route, tools: Iterable[ToolSchema]) -> list[Quarantined]:
    """Tools that the route's dialect cannot express, with the reason."""
    dialect = dialect_of(route.dialect)
    return [Quarantined(name=tool.name, reason=tool.reason) for tool in fitted(tools, dialect.tools)[1]]


def route_of(loaded: Loaded[Settings], secrets: Secrets, model: str = "") -> Route:
    """Resolve a model name (empty: the configured one) to a route. Raises `NoModel`."""
    keys = by_name(secrets.get, loaded.value.credentials)
    route = choose(model_settings(loaded, model), keys, loaded.value.models, sign_ins(secrets))
    return _mixed(route, loaded, secrets) if route.vendor.mixes else route


def _mixed(route: Route, loaded: Loaded[Settings], secrets: Secrets) -> Route:
    """The route of a mixture, with the facts of its aggregator. Raises `NoModel`."""
    mixtures = loaded.value.moa
    mixture = mixtures.get(route.model)
    if mixture is None:
        near = get_close_matches(route.model, mixtures, n=1)
        guess = f" Did you mean `{near[0]}`?" if near else ""
        raise NoModel(f"There is no mixture `{route.model}` (section `moa` of config.yaml).{guess}")
    answers = aggregator_of(mixture)
    if not mixture.members or vendor_of(replace(loaded.value.model, default=answers)) == route.vendor.name:
        raise NoModel(f"`moa.{route.model}` needs `members`, and as `aggregator` a single model: vendor/model.")
    single = route_of(loaded, secrets, answers)
    return replace(route, base_url="", facts=replace(single.facts, dialect=single.dialect, price=None))


def aggregator_of(mixture: MixtureSettings) -> str:
    """The member of a mixture that writes the answer."""
    return mixture.aggregator or mixture.members[0]


def sign_ins(secrets: Secrets) -> SignIns:
    """OAuth key sources of a home; loaded only for vendors with a sign-in."""

    def source_of(vendor: Vendor) -> KeySource | None:
        renewal = late("hermes_agent.providers.signin.token_refresh:TokenRefresh")(
            secrets.home, SystemClock(), secrets.get, secrets.hide
        )
        source: KeySource | None = renewal.source(vendor)
        return source

    return source_of


def model_settings(loaded: Loaded[Settings], model: str = "") -> ModelSettings:
    """The settings for asking this model, else the configured one. Raises `NoModel`.

    `model.base_url` belongs to the model in config.yaml. If another model is named (here or in HERMES_MODEL) whose
    vendor has its own address, that address is used, so that no key is sent to the wrong server.
    """
    chosen = loaded.value.model
    written = loaded.overridden.get("model.default", chosen.default) or ""
    asked = replace(chosen, default=model or chosen.default)
    if not chosen.base_url or asked.default == written or not asked.default:
        return asked
    vendor = vendor_of(asked)
    elsewhere = has_own_address(vendor) and vendor != vendor_of(replace(chosen, default=str(written)))
    return replace(asked, base_url="") if elsewhere else asked


log = logging.getLogger(__name__)
Answerer: TypeAlias = "Broker | Mixture"
Reachable = Callable[[Route], Awaitable[Route]]
"""Gives a route its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Builds brokers for model names and caches their fallback chains, for one reading of the settings. A chain with
    unusable models is not cached, so it is built again next time."""

    loaded: Loaded[Settings]
    secrets: Secrets
    cool_downs: CoolDowns
    reachable: Reachable
    http: Http
    clock: Clock
    _chains: dict[tuple[str, str, bool], Chain] = field(default_factory=dict, repr=False)

    async def model(self, name: str, ledger: Ledger, first: str = "", *, alone: bool = False) -> Answerer:
        """The model of that name (empty: the configured one) with its fallbacks; `first` is tried before it, or, if
        `alone`, instead of it. Raises `NoModel`."""
        if first and alone:
            return Broker(await self.chain(first, alone=True), ledger)
        mixture = self._mixed(name)
        if mixture is not None and not first:
            return await self._mixture(*mixture, ledger)
        return Broker(await self.chain(name if mixture is None else aggregator_of(mixture[1]), first), ledger)

    async def chain(self, name: str, first: str = "", *, alone: bool = False) -> Chain:
        """The fallback chain: `first` if given, the named model, then, unless `alone`, the fallbacks. Raises
        `NoModel` if the named one is unusable; others are skipped and listed in `unusable`, and an unusable
        `first` is logged."""
        key = (name, first, alone)
        if key in self._chains:
            return self._chains[key]
        main = await self._leg(name)
        legs, unusable = {main.route.name: main}, list[str]()
        for other in (first, *(() if alone else self.loaded.value.model.fallbacks)):
            try:
                leg = await self._leg(other) if other else main
            except NoModel as reason:
                if other == first:
                    log.warning("%s cannot be asked, %s is asked instead: %s", first, main.route.name, reason)
                unusable.append(f"{'' if other == first else 'the fallback '}{other} cannot be asked: {reason}")
                continue
            legs = {leg.route.name: leg, **legs} if other == first else {**legs, leg.route.name: leg}
        made = Chain(
            legs=tuple(legs.values()),
            http=self.http,
            clock=self.clock,
            settings=self.loaded.value.model,
            cool_downs=self.cool_downs,
            unusable=tuple(unusable),
        )
        if not unusable:
            self._chains[key] = made
        return made

    async def _leg(self, name: str) -> Leg:
        route = route_of(self.loaded, self.secrets, name)
        if route.vendor.mixes:
            raise NoModel(f"{route.name} is a mixture, which only answers conversations: name a single model here.")
        route = await self.reachable(route)
        return leg_of(route, self.secrets.get, self.loaded.value.credentials.get(route.vendor.name))

    def _mixed(self, name: str) -> tuple[str, MixtureSettings] | None:
        """The mixture that the name means, with its route name; None for a single model."""
        if not self.loaded.value.moa:
            return None
        route = route_of(self.loaded, self.secrets, name)
        return (route.name, self.loaded.value.moa[route.model]) if route.vendor.mixes else None

    async def _mixture(self, name: str, settings: MixtureSettings, ledger: Ledger) -> Mixture:
        members, unusable = [], []
        for member in settings.members:
            try:
                members.append(Broker(await self.chain(member, alone=True), ledger))
            except NoModel as reason:
                unusable.append((member, str(reason)))
        return Mixture(
            name,
            members=members,
            aggregator=Broker(await self.chain(aggregator_of(settings)), ledger),
            settings=settings,
            clock=self.clock,
            unusable=unusable,
        )


async def started(vendor: Vendor, closing: AsyncExitStack) -> str:
    """The address of a vendor that lives in this process, which is started until `closing` ends."""
    address: str = await closing.enter_async_context(late(vendor.server)())
    return address


class StoredCoolDowns:
    """`CoolDowns` in the store, shared by all processes of the database. Key usage comes from the ledger."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def resting(self, now: float) -> Sequence[CoolDown]:
        """The cool-downs still active at `now`."""
        return await self._store.cool_downs.resting(now)

    async def rest(self, rests: Sequence[CoolDown]) -> None:
        """Save these cool-downs, replacing earlier ones for the same key or model."""
        await self._store.cool_downs.put(rests, self._clock.now())

    async def uses(self, provider: str, since: float) -> Mapping[str, Use]:
        """Calls and last use of each of the provider's keys since then."""
        uses = await self._store.usage.uses(provider, since)
        return {name: Use(calls=calls, last=last) for name, (calls, last) in uses.items()}
