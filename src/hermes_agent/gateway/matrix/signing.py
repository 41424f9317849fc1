"""Matrix cross-signing: creates and stores the account's keys, and signs its device with them."""

from __future__ import annotations

import json
import logging
import secrets
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.gateway.channel import MessageGone, NeverHere, NotNow, TokenRefused
from hermes_agent.gateway.matrix.client import Client, Event, inside, table, text
from hermes_agent.host.late import libraries
from hermes_agent.host.paths import read_small, write_private

USAGES = ("master", "self_signing", "user_signing")
SEED_BYTES = 32

Values = dict[str, Any]


def canonical(value: object) -> bytes:
    """Canonical JSON for signing and hashing (Matrix, appendices 3.1)."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def unpadded(content: bytes) -> str:
    """Base64 without padding."""
    return b64encode(content).decode().rstrip("=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The three cross-signing keys of an account, as seeds: the master key signs the self-signing key, which signs
    devices."""

    user: str
    seeds: Mapping[str, bytes]

    def public(self, usage: str) -> str:
        """The public key for a usage."""
        return unpadded(self._key(usage).public_key().export_key(format="raw"))

    def signed(self, usage: str, content: Values) -> Values:
        """The content with an added signature of that key."""
        bare = {name: value for name, value in content.items() if name not in ("signatures", "unsigned")}
        made = libraries.eddsa.new(self._key(usage), "rfc8032").sign(canonical(bare))
        signatures = {user: dict(table(each)) for user, each in table(content.get("signatures")).items()}
        signatures.setdefault(self.user, {})[f"ed25519:{self.public(usage)}"] = unpadded(made)
        return {**bare, "signatures": signatures}

    def stated(self) -> Values:
        """The key objects to upload, two of them signed by the master key."""
        stated = {}
        for usage in USAGES:
            key = self.public(usage)
            content = {"user_id": self.user, "usage": [usage], "keys": {f"ed25519:{key}": key}}
            stated[f"{usage}_key"] = content if usage == "master" else self.signed("master", content)
        return stated

    def is_of(self, found: Event) -> bool:
        """Whether the account's keys on the homeserver (a query answer) are these."""
        return f"ed25519:{self.public('master')}" in inside(found, "master_keys", self.user, "keys")

    def _key(self, usage: str) -> Any:  # noqa: ANN401  another library's
        return libraries.elliptic_curves.construct(curve="ed25519", seed=self.seeds[usage])


def kept(path: Path, user: str) -> Keys | None:
    """Load an account's keys from a file; None if there are none. Raises `HomeError`."""
    try:
        found = table(json.loads(read_small(path) or b"{}"))
        seeds = {usage: b64decode(text(inside(found, user).get(usage))) for usage in USAGES}
    except ValueError:
        return None
    return Keys(user=user, seeds=seeds) if all(len(seed) == SEED_BYTES for seed in seeds.values()) else None


def made(path: Path, user: str) -> Keys:
    """Generate an account's keys and save them. Raises `HomeError`."""
    keys = Keys(user=user, seeds={usage: secrets.token_bytes(SEED_BYTES) for usage in USAGES})
    write_private(
        path, json.dumps({user: {usage: b64encode(seed).decode() for usage, seed in keys.seeds.items()}}).encode()
    )
    return keys


def is_signed(found: Event, user: str, device: str) -> bool:
    """Whether the homeserver lists a signature of the device by its account's self-signing key. The signature itself
    is checked by people's clients."""
    signers = inside(found, "self_signing_keys", user, "keys")
    marks = inside(found, "device_keys", user, device, "signatures", user)
    return any(signer in marks for signer in signers)


log = logging.getLogger(__name__)

FILE = "signing.json"
LOST = (
    "The keys of the device {device} are not in {folder}, so it can read nothing and people are warned of it: "
    "bring the folder back, or log in anew and keep the new MATRIX_ACCESS_TOKEN."
)

Sign = Callable[[dict[str, Any]], Awaitable[str]]
"""The signature of this device under a content."""


class Vouching:
    """Cross-signing of this Matrix device by its account. `note` shows the fingerprint for people to compare."""

    def __init__(self, client: Client, folder: Path, note: Callable[[str], None]) -> None:
        self._client = client
        self._folder = folder
        self._note = note
        self._checked = self._done = False
        self.keys: Keys | None = None

    async def check(self, user: str, device: str, fingerprint: str) -> None:
        """Compare this device's keys with the homeserver's, once. Raises `TokenRefused` if they differ."""
        if self._checked:
            return
        found = inside(await self._known(user), "device_keys", user, device, "keys")
        if found and found.get(f"ed25519:{device}") != fingerprint:
            raise TokenRefused(LOST.format(device=device, folder=self._folder))
        self._checked = True

    async def vouch(self, user: str, device: str, fingerprint: str, sign: Sign) -> None:
        """Sign this device with the account's keys, once, and create keys if the account has none. If another client
        created them, a person has to sign there. Raises `NotNow`; a refusal by the homeserver is tolerated."""
        if self._done:
            return
        try:
            vouched = await self._vouched(user, device, fingerprint, sign)
        except HomeError as error:
            raise NotNow(str(error)) from error
        except (NeverHere, MessageGone, TokenRefused) as error:
            log.warning("matrix: the homeserver takes no signature of this device: %s", error)
            vouched = False
        self._done = True
        self._notice(device, fingerprint, vouched=vouched)

    async def _vouched(self, user: str, device: str, fingerprint: str, sign: Sign) -> bool:
        found = await self._known(user)
        path = self._folder / FILE
        keys = kept(path, user)
        if not inside(found, "master_keys", user):
            keys = keys or made(path, user)
            stated = keys.stated()
            master = stated["master_key"]
            master["signatures"] = {user: {f"ed25519:{device}": await sign(master)}}
            await self._client.call("POST", "keys/device_signing/upload", stated, reads=True)
        elif keys is None or not keys.is_of(found):
            log.warning("matrix: the account has signing keys of another program: verify this device from there")
            return is_signed(found, user, device)
        self.keys = keys
        mine = inside(found, "device_keys", user, device)
        if inside(mine, "keys").get(f"ed25519:{device}") != fingerprint:
            return False
        if not is_signed(found, user, device):
            signed = keys.signed("self_signing", dict(mine))
            given = await self._client.call("POST", "keys/signatures/upload", {user: {device: signed}}, reads=True)
            if inside(given, "failures", user):
                raise NeverHere("the signature is refused.")
        return True

    async def _known(self, user: str) -> Event:
        return await self._client.call("POST", "keys/query", {"device_keys": {user: []}}, reads=True)

    def _notice(self, device: str, fingerprint: str, *, vouched: bool) -> None:
        spaced = " ".join(fingerprint[at : at + 4] for at in range(0, len(fingerprint), 4))
        self._note(f"device {device}, fingerprint {spaced}{'' if vouched else ', not signed by its account'}")
