"""The chain of a conversation: the model that answers, the ones that answer while it cannot, and their keys."""

from __future__ import annotations

from dataclasses import field, replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.providers.route import Route
from hermes_agent.providers.routing.cooldowns import BriefCoolDowns, CoolDowns
from hermes_agent.providers.routing.credentials import Credential, Secrets, Strategy, credentials_of
from hermes_agent.providers.settings import CredentialSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One route of the chain and the credentials that it may be asked with, at least one."""

    route: Route
    credentials: tuple[Credential, ...]
    strategy: Strategy = "fill_first"

    def with_credential(self, name: str) -> Route:
        """The route with this credential's key. Raises `StopIteration` for one that the leg has not."""
        chosen = next(one for one in self.credentials if one.name == name)
        return replace(self.route, key=chosen.key, credential=chosen.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The legs in order, the primary first. `unusable` tells, in a sentence each, which fallbacks cannot be asked at
    all."""

    legs: tuple[Leg, ...]
    cool_downs: CoolDowns = field(default_factory=BriefCoolDowns)
    unusable: tuple[str, ...] = ()


def leg_of(route: Route, secrets: Secrets | None = None, settings: CredentialSettings | None = None) -> Leg:
    """A route with every key of its vendor that `secrets` has; a key of the route itself that is none of those comes
    alone, because it was got in another way."""
    credentials = [] if secrets is None else credentials_of(route.vendor, secrets, settings)
    if route.key not in {one.key for one in credentials}:
        credentials = [Credential(name=route.credential, key=route.key)]
    return Leg(
        route=route,
        credentials=tuple(credentials),
        strategy=settings.strategy if settings is not None else "fill_first",
    )


def single(route: Route) -> Chain:
    """The chain of one route with its own key."""
    return Chain(legs=(leg_of(route),))
