"""Who a key lets in: each is a principal with a standing, told apart in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping

from hermes_agent.app.settings import API_KEY, API_OWNER, API_PLATFORM, ApiSettings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError
from hermes_agent.core.inbound import Principal, Standing

SHORTEST_KEY = 16
"""Characters. Less than that can be tried out."""
PLATFORM = API_PLATFORM


@dataclass(slots=True, kw_only=True)
class Keys:
    """The keys of a server, kept as their hashes; they change with the settings."""

    hashes: tuple[tuple[bytes, Principal], ...] = ()

    def whose(self, presented: str) -> Principal | None:
        """Whom a key lets in. Takes as long for a wrong one as for a right one."""
        hashed = digest(presented)
        found = None
        for known, principal in self.hashes:
            if hmac.compare_digest(known, hashed):
                found = principal
        return found


def digest(key: str) -> bytes:
    """What is kept and compared of a key; as long for each."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def open_keys(settings: ApiSettings, secret: Callable[[str], str]) -> Keys:
    """The keys that the settings name. Raises `ConfigError` where there is none, one is short, or two are the same."""
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
    """What is wrong with a key that is missing or too short."""
    make = f"`hermes api key` makes the owner's, `hermes secrets set {secret_name or 'NAME'}` keeps any other."
    if not secret_name:
        return f"api.keys.{name}.secret names no secret. {make}"
    if not value:
        return f"The API needs a key, and {secret_name} is not set. {make}"
    return f"{secret_name} has {len(value)} characters; a key of the API has at least {SHORTEST_KEY}. {make}"
