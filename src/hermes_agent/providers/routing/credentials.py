"""The keys of a provider by name, and the order in which they are taken."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.providers.routing.cooldowns import Use
from hermes_agent.providers.settings import CredentialSettings
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS

Strategy = Literal["fill_first", "round_robin", "least_used"]
Secrets = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A key and the name that it is kept under; the key is never shown."""

    name: str
    key: str = field(repr=False)

    @property
    def mark(self) -> str:
        """Tells this key from another one under the same name; says nothing about it."""
        return hashlib.sha256(f"hermes credential {self.key}".encode()).hexdigest()[:12] if self.key else ""


def credentials_of(vendor: Vendor, secrets: Secrets, settings: CredentialSettings | None = None) -> list[Credential]:
    """The vendor's keys that are there, in order: those of `settings.names`; otherwise the first of the vendor's names
    that has a value, then `NAME_2`, `NAME_3` and so on up to the first that has none."""
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
    """The secrets, where the vendors whose keys are set by name have the first of those under their usual names."""
    usual: dict[str, tuple[str, ...]] = {}
    for vendor, named in settings.items():
        if named.names and vendor in VENDORS:
            usual.update(dict.fromkeys(VENDORS[vendor].key_names, named.names))

    def get(name: str) -> str | None:
        found = (secrets(each) for each in usual.get(name, (name,)))
        return next((key for key in found if key), None)

    return get


def in_order(credentials: Sequence[Credential], strategy: Strategy, uses: Mapping[str, Use]) -> list[Credential]:
    """The credentials as the strategy prefers them; where two are equal, as they were."""
    none = Use()
    match strategy:
        case "fill_first":
            return list(credentials)
        case "round_robin":
            return sorted(credentials, key=lambda one: uses.get(one.name, none).last)
        case "least_used":
            return sorted(credentials, key=lambda one: uses.get(one.name, none).calls)
