"""API keys: loads them from settings and secrets, and maps a presented key to its principal in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import field

from hermes_agent.app.settings import API_KEY, API_OWNER, API_PLATFORM, ApiSettings
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError

SHORTEST_KEY = 16
"""Characters. Less than that can be tried out."""
PLATFORM = API_PLATFORM


@dataclass(slots=True, kw_only=True)
class Keys:
    """The API keys of a server as SHA-256 hashes with their principals; replaced when settings or secrets change.
    `replaced` is called then, to end what a revoked key holds open."""

    hashes: tuple[tuple[bytes, Principal], ...] = ()
    replaced: set[Callable[[], None]] = field(default_factory=set)

    def known(self, presented: str) -> tuple[bytes, Principal] | None:
        """The hash and the principal of a key; None if it is unknown. Constant time."""
        hashed = digest(presented)
        found = None
        for each in self.hashes:
            if hmac.compare_digest(each[0], hashed):
                found = each
        return found

    def whose(self, presented: str) -> Principal | None:
        """The principal of a key; None if it is unknown. Constant time."""
        found = self.known(presented)
        return found and found[1]

    def replace(self, new: Keys | None) -> None:
        """Go by other keys (None: by none) from now on."""
        self.hashes = new.hashes if new else ()
        for each in tuple(self.replaced):
            each()


def digest(key: str) -> bytes:
    """SHA-256 of a key, for storage and comparison."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def open_keys(settings: ApiSettings, secret: Callable[[str], str]) -> Keys:
    """Load the keys that the settings name. Raises `ConfigError` if there is none, one is too short, or two are
    equal."""
    if API_OWNER in settings.keys:
        raise ConfigError(f"api.keys.{API_OWNER}: that name stands for {API_KEY}; give this key another.")
    wanted: Mapping[str, tuple[str, Standing]] = {
        API_OWNER: (API_KEY, Standing.OWNER),
        **{name: (key.secret, key.standing) for name, key in settings.keys.items()},
    }
    hashes: list[tuple[bytes, Principal]] = []
    for name, (secret_name, standing) in wanted.items():
        value = secret(secret_name) if secret_name else ""
        if not value and name == API_OWNER and len(wanted) > 1:
            continue
        if len(value) < SHORTEST_KEY:
            raise ConfigError(short(name, secret_name, value))
        hashed = digest(value)
        if any(known == hashed for known, _ in hashes):
            raise ConfigError(f"api.keys.{name}: another name has the same key; give each person one of their own.")
        hashes.append((hashed, Principal(platform=PLATFORM, user=name, standing=standing, name=name)))
    return Keys(hashes=tuple(hashes))


def short(name: str, secret_name: str, value: str) -> str:
    """The error message for a missing or too short key."""
    make = f"`hermes api key` makes the owner's, `hermes secrets set {secret_name or 'NAME'}` keeps any other."
    if not secret_name:
        return f"api.keys.{name}.secret names no secret. {make}"
    if not value:
        return f"The API needs a key, and {secret_name} is not set. {make}"
    return f"{secret_name} has {len(value)} characters; a key of the API has at least {SHORTEST_KEY}. {make}"
