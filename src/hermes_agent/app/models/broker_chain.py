"""Who answers: the broker of a chain of models, or a mixture of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hermes_agent.app.models.chains import Reachable, chain_alone, chain_before, chain_of
from hermes_agent.app.models.routes import aggregator_of, route_of
from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.host.config import Loaded
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.broker import Broker, Ledger
from hermes_agent.providers.mixture.settings import MixtureSettings
from hermes_agent.providers.routing.chain import Chain
from hermes_agent.providers.routing.cooldowns import CoolDowns

if TYPE_CHECKING:
    from hermes_agent.providers.mixture.mixture import Mixture

MIXTURE = "hermes_agent.providers.mixture.mixture:Mixture"
Answerer: TypeAlias = "Broker | Mixture"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChain:
    """Makes the models of one process."""

    loaded: Loaded[Settings]
    secrets: Secrets
    cool_downs: CoolDowns
    reachable: Reachable
    http: Http
    clock: Clock

    async def model(self, name: str, ledger: Ledger, first: str = "", *, alone: bool = False) -> Answerer:
        """The model of that name (empty: the configured one) with what stands behind it; `first` before it, or,
        `alone`, in its place. Raises `NoModel`."""
        parts = (self.loaded, self.secrets)
        if first and alone:
            return self._broker(await chain_alone(first, *parts, self.cool_downs, self.reachable), ledger)
        mixture = self._mixed(name)
        if mixture is not None and not first:
            return await self._mixture(mixture, ledger)
        behind = name if mixture is None else aggregator_of(mixture[1])
        if first:
            return self._broker(await chain_before(first, *parts, behind, self.cool_downs, self.reachable), ledger)
        return self._broker(await chain_of(*parts, behind, self.cool_downs, self.reachable), ledger)

    def _broker(self, chain: Chain, ledger: Ledger) -> Broker:
        return Broker(chain, ledger=ledger, http=self.http, clock=self.clock, settings=self.loaded.value.model)

    def _mixed(self, name: str) -> tuple[str, MixtureSettings] | None:
        """The mixture that the name means, and its own name; None for a single model."""
        if not self.loaded.value.moa:
            return None
        route = route_of(self.loaded, self.secrets, name)
        return (route.name, self.loaded.value.moa[route.model]) if route.vendor.mixes else None

    async def _mixture(self, named: tuple[str, MixtureSettings], ledger: Ledger) -> Mixture:
        name, settings = named
        parts, members, unusable = (self.loaded, self.secrets), [], []
        for member in settings.members:
            try:
                chain = await chain_alone(member, *parts, self.cool_downs, self.reachable)
                members.append(self._broker(chain, ledger))
            except NoModel as reason:
                unusable.append((member, str(reason)))
        chain = await chain_of(*parts, aggregator_of(settings), self.cool_downs, self.reachable)
        made: Mixture = late(MIXTURE)(
            name,
            members=members,
            aggregator=self._broker(chain, ledger),
            settings=settings,
            clock=self.clock,
            unusable=unusable,
        )
        return made
