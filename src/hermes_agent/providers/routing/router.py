"""Router of a run: chooses the endpoint of the chain for each request, and records cool-downs."""

from __future__ import annotations

from dataclasses import replace

from hermes_agent.providers.routing.chain import Chain, Leg, in_order
from hermes_agent.providers.routing.endpoint import Endpoint, Ledger
from hermes_agent.providers.routing.policy import Decision, History, Place, Situation, Station, Try, begin, decide
from hermes_agent.store.cooldowns import CoolDown

# How old the knowledge of what other processes let rest may be.
FRESH_SECONDS = 10.0
DAY = 24 * 3600.0


class Router:
    """Chooses the endpoint for each request of one run. The order of a provider's credentials is fixed with the first
    request, so that a run stays with the key whose cache it filled."""

    def __init__(self, chain: Chain, ledger: Ledger) -> None:
        self.unusable = chain.unusable
        self._chain = chain
        self._ledger = ledger
        self._legs = chain.legs
        self._endpoints: dict[Place, Endpoint] = {}
        self._rests: tuple[CoolDown, ...] = ()
        self._looked: float | None = None
        self._place = self._first()
        self._choice = len(chain.legs) > 1 or any(len(leg.credentials) > 1 for leg in chain.legs)

    @property
    def primary(self) -> Endpoint:
        """The endpoint of the chain's first model, under its current credential."""
        return self.endpoint(self._place if self._place.station == 0 else self._first())

    @property
    def current(self) -> Endpoint:
        """The endpoint in use."""
        return self.endpoint(self._place)

    def endpoint(self, place: Place) -> Endpoint:
        """The endpoint at that place; created on first use."""
        if place not in self._endpoints:
            route = self._legs[place.station].with_credential(place.credential)
            self._endpoints[place] = Endpoint(route, self._chain, self._ledger)
        return self._endpoints[place]

    async def begin(self) -> Place:
        """The first place for the next request."""
        if self._choice:
            await self._survey()
            self._place = begin(self._situation())
        return self._place

    async def after(self, failed: History, *, left: float | None, smaller: int | None) -> Decision:
        """The decision after the last of these failed attempts; new cool-downs are stored before it returns."""
        situation = replace(
            self._situation(),
            left=left,
            smaller=smaller,
            chance=self._chain.chance(),
            max_retries=self._chain.settings.max_retries,
            cool_down=self._chain.settings.cool_down,
        )
        decision = decide(failed, situation)
        if decision.rests:
            rests = [replace(rest, mark=self._mark(rest)) for rest in decision.rests]
            self._rests = (*self._rests, *rests)
            await self._chain.cool_downs.rest(rests)
        if isinstance(decision, Try):
            self._place = decision.place
        return decision

    def why(self, station: int) -> str:
        """Why a station is unavailable, in words; empty where it may be available."""
        now = self._chain.clock.now()
        leg = self._legs[station]
        resting = [
            rest
            for rest in self._rests
            if rest.until > now
            and any(rest.covers(leg.route.vendor.name, one.name, leg.route.model) for one in leg.credentials)
        ]
        if not resting:
            return ""
        last = min(resting, key=lambda rest: rest.until)
        return f"{leg.route.name} is paused for another {last.until - now:.0f} s ({last.reason})"

    def _first(self) -> Place:
        return Place(station=0, credential=self._legs[0].credentials[0].name)

    async def _survey(self) -> None:
        now = self._chain.clock.monotonic()
        if self._looked is None:
            self._legs = tuple([await self._ordered(leg) for leg in self._legs])
            self._place = self._first()
        elif now - self._looked < FRESH_SECONDS:
            return
        self._looked = now
        resting = await self._chain.cool_downs.resting(self._chain.clock.now())
        self._rests = tuple(rest for rest in resting if rest.mark == self._mark(rest))

    async def _ordered(self, leg: Leg) -> Leg:
        if len(leg.credentials) < 2 or leg.strategy == "fill_first":
            return leg
        uses = await self._chain.cool_downs.uses(leg.route.vendor.name, self._chain.clock.now() - DAY)
        return replace(leg, credentials=tuple(in_order(leg.credentials, leg.strategy, uses)))

    def _situation(self) -> Situation:
        stations = (
            Station(
                provider=leg.route.vendor.name,
                model=leg.route.model,
                credentials=tuple(one.name for one in leg.credentials),
                window=leg.route.facts.window,
            )
            for leg in self._legs
        )
        return Situation(chain=tuple(stations), rests=self._rests, now=self._chain.clock.now())

    def _mark(self, rest: CoolDown) -> str:
        """The mark of the key that the rest is about; empty where it is about none, or none is here."""
        known = (one for leg in self._legs if leg.route.vendor.name == rest.provider for one in leg.credentials)
        return next((one.mark for one in known if one.name == rest.credential), "")
