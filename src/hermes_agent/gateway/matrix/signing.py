"""Cross-signing: the account's own keys, by which people's programs know its device; each is a seed in a file."""

from __future__ import annotations

import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.matrix.shapes import Event, inside, table, text
from hermes_agent.host.files import read_small, write_private
from hermes_agent.host.late import late

USAGES = ("master", "self_signing", "user_signing")
SEED_BYTES = 32

Values = dict[str, Any]


def canonical(value: object) -> bytes:
    """JSON as it is signed and hashed (Matrix, appendices 3.1)."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def unpadded(content: bytes) -> str:
    """Base64 without the signs at its end."""
    return b64encode(content).decode().rstrip("=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Three keys of one account by usage, as seeds: the master key stands for the account, signs the self-signing key,
    and that one the account's devices."""

    user: str
    seeds: Mapping[str, bytes]

    def public(self, usage: str) -> str:
        """What others know of a key."""
        return unpadded(self._key(usage).public_key().export_key(format="raw"))

    def signed(self, usage: str, content: Values) -> Values:
        """The content with a signature of that key beside those that it has."""
        bare = {name: value for name, value in content.items() if name not in ("signatures", "unsigned")}
        made = late("Crypto.Signature.eddsa").new(self._key(usage), "rfc8032").sign(canonical(bare))
        signatures = {user: dict(table(each)) for user, each in table(content.get("signatures")).items()}
        signatures.setdefault(self.user, {})[f"ed25519:{self.public(usage)}"] = unpadded(made)
        return {**bare, "signatures": signatures}

    def stated(self) -> Values:
        """What is put up on the homeserver: each key with its usage, the other two signed by the master key."""
        stated = {}
        for usage in USAGES:
            key = self.public(usage)
            content = {"user_id": self.user, "usage": [usage], "keys": {f"ed25519:{key}": key}}
            stated[f"{usage}_key"] = content if usage == "master" else self.signed("master", content)
        return stated

    def is_of(self, found: Event) -> bool:
        """Whether the account's keys on the homeserver (an answer to a query) are these."""
        return f"ed25519:{self.public('master')}" in inside(found, "master_keys", self.user, "keys")

    def _key(self, usage: str) -> Any:  # noqa: ANN401  another library's
        return late("Crypto.PublicKey.ECC").construct(curve="ed25519", seed=self.seeds[usage])


def kept(path: Path, user: str) -> Keys | None:
    """The keys of an account that are kept in a file; None where there are none. Raises `HomeError`."""
    try:
        found = table(json.loads(read_small(path) or b"{}"))
        seeds = {usage: b64decode(text(inside(found, user).get(usage))) for usage in USAGES}
    except ValueError:
        return None
    return Keys(user=user, seeds=seeds) if all(len(seed) == SEED_BYTES for seed in seeds.values()) else None


def made(path: Path, user: str) -> Keys:
    """New keys of an account, kept in a file. Raises `HomeError`."""
    keys = Keys(user=user, seeds={usage: secrets.token_bytes(SEED_BYTES) for usage in USAGES})
    write_private(
        path, json.dumps({user: {usage: b64encode(seed).decode() for usage, seed in keys.seeds.items()}}).encode()
    )
    return keys


def is_signed(found: Event, user: str, device: str) -> bool:
    """Whether a device carries a signature by the self-signing key of its account, as the homeserver says both; what
    people's programs do with that is to check it."""
    signers = inside(found, "self_signing_keys", user, "keys")
    marks = inside(found, "device_keys", user, device, "signatures", user)
    return any(signer in marks for signer in signers)
