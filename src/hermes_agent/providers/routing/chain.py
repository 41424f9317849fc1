"""The chain of a conversation: its model, the fallback models, their keys by name, and the cooldowns of each."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from typing import Literal, Protocol

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.http import Http
from hermes_agent.providers.route import Route
from hermes_agent.providers.settings import CredentialSettings, ModelSettings
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS
from hermes_agent.store.cooldowns import CoolDown


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Uses of a credential in the last day, and the last one (seconds since 1970)."""

    calls: int = 0
    last: float = 0.0


class CoolDowns(Protocol):
    """Store of cool-downs and of the use of credentials.

    - `resting` returns the cool-downs in force at `now`;
    - `rest` stores cool-downs before it returns; a later one for the same thing replaces the earlier;
    - `uses` returns the uses of a provider's credentials since then, by name.
    """

    async def resting(self, now: float) -> Sequence[CoolDown]: ...

    async def rest(self, rests: Sequence[CoolDown]) -> None: ...

    async def uses(self, provider: str, since: float) -> Mapping[str, Use]: ...


class BriefCoolDowns:
    """Cool-downs in the memory of this process; counts no uses of credentials."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], CoolDown] = {}

    async def resting(self, now: float) -> Sequence[CoolDown]:
        return [rest for rest in self.kept.values() if rest.until > now]

    async def rest(self, rests: Sequence[CoolDown]) -> None:
        self.kept.update({(rest.provider, rest.credential, rest.model): rest for rest in rests})

    async def uses(self, provider: str, since: float) -> Mapping[str, Use]:  # noqa: ARG002 - nothing is counted here
        return {}


Strategy = Literal["fill_first", "round_robin", "least_used"]
Secrets = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """An API key with its name; the key is never shown."""

    name: str
    key: str = field(repr=False)

    @property
    def mark(self) -> str:
        """A fingerprint of the key that does not reveal it."""
        return hashlib.sha256(f"hermes credential {self.key}".encode()).hexdigest()[:12] if self.key else ""


def credentials_of(vendor: Vendor, secrets: Secrets, settings: CredentialSettings | None = None) -> list[Credential]:
    """The vendor's available keys in order: those of `settings.names`; otherwise the first of the vendor's names
    that has a value, then `NAME_2`, `NAME_3` and so on up to the first without one."""
    names = settings.names if settings is not None and settings.names else _names(vendor, secrets)
    found: dict[str, Credential] = {}
    for name in names:
        key = (secrets(name) or "").strip()
        if key and key.isascii() and key.isprintable() and " " not in key:
            found.setdefault(key, Credential(name=name, key=key))
    return list(found.values())


def _names(vendor: Vendor, secrets: Secrets) -> Iterator[str]:
    first = next((name for name in vendor.key_names if (secrets(name) or "").strip()), None)
    if first is None:
        return
    yield first
    for number in count(2):
        name = f"{first}_{number}"
        if not (secrets(name) or "").strip():
            return
        yield name


def by_name(secrets: Secrets, settings: Mapping[str, CredentialSettings]) -> Secrets:
    """The secrets, where a vendor's usual names give the first key configured for it."""
    usual: dict[str, tuple[str, ...]] = {}
    for vendor, named in settings.items():
        if named.names and vendor in VENDORS:
            usual.update(dict.fromkeys(VENDORS[vendor].key_names, named.names))

    def get(name: str) -> str | None:
        found = (secrets(each) for each in usual.get(name, (name,)))
        return next((key for key in found if key), None)

    return get


def in_order(credentials: Sequence[Credential], strategy: Strategy, uses: Mapping[str, Use]) -> list[Credential]:
    """The credentials in the strategy's order of preference; ties keep their order."""
    none = Use()
    match strategy:
        case "fill_first":
            return list(credentials)
        case "round_robin":
            return sorted(credentials, key=lambda one: uses.get(one.name, none).last)
        case "least_used":
            return sorted(credentials, key=lambda one: uses.get(one.name, none).calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One model of a conversation's chain: its route, and its credentials (at least one)."""

    route: Route
    credentials: tuple[Credential, ...]
    strategy: Strategy = "fill_first"

    def with_credential(self, name: str) -> Route:
        """The route with this credential's key. Raises `StopIteration` for one that the leg has not."""
        chosen = next(one for one in self.credentials if one.name == name)
        return replace(self.route, key=chosen.key, credential=chosen.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The models of a conversation as routes in order, the primary first, with everything needed to ask them;
    shared by all runs under the same settings. `unusable` explains fallbacks that cannot be asked, a sentence each;
    `chance` gives the random part of a back-off."""

    legs: tuple[Leg, ...]
    http: Http
    clock: Clock
    settings: ModelSettings
    cool_downs: CoolDowns = field(default_factory=BriefCoolDowns)
    unusable: tuple[str, ...] = ()
    chance: Callable[[], float] = random.random


def leg_of(route: Route, secrets: Secrets | None = None, settings: CredentialSettings | None = None) -> Leg:
    """A route with every key of its vendor in `secrets`; a route whose own key is none of those keeps it alone,
    because it was obtained in another way."""
    credentials = [] if secrets is None else credentials_of(route.vendor, secrets, settings)
    if route.key not in {one.key for one in credentials}:
        credentials = [Credential(name=route.credential, key=route.key)]
    return Leg(
        route=route,
        credentials=tuple(credentials),
        strategy=settings.strategy if settings is not None else "fill_first",
    )


def single(route: Route, http: Http, clock: Clock, settings: ModelSettings) -> Chain:
    """The chain of one route with its own key."""
    return Chain(legs=(leg_of(route),), http=http, clock=clock, settings=settings)
