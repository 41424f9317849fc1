"""That the agent's account vouches for its device, so that people's programs take what it writes for its own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hermes_agent.core.errors import HomeError
from hermes_agent.gateway.channel import MessageGone, NeverHere, NotNow, TokenRefused
from hermes_agent.gateway.matrix.client import Client
from hermes_agent.gateway.matrix.shapes import Event, inside
from hermes_agent.gateway.matrix.signing import Keys, is_signed, kept, made

log = logging.getLogger(__name__)

FILE = "signing.json"
LOST = (
    "The keys of the device {device} are not in {folder}, so it can read nothing and people are warned of it: "
    "bring the folder back, or log in anew and keep the new MATRIX_ACCESS_TOKEN."
)

Sign = Callable[[dict[str, Any]], Awaitable[str]]
"""The signature of this device under a content."""


class Vouching:
    """One account's keys beside those of its device. `note` is told what a person compares."""

    def __init__(self, client: Client, folder: Path, note: Callable[[str], None]) -> None:
        self._client = client
        self._folder = folder
        self._note = note
        self._checked = self._done = False
        self.keys: Keys | None = None

    async def check(self, user: str, device: str, fingerprint: str) -> None:
        """Compare with what the homeserver knows, once. Raises `TokenRefused` where it knows other keys of this
        device."""
        if self._checked:
            return
        found = inside(await self._known(user), "device_keys", user, device, "keys")
        if found and found.get(f"ed25519:{device}") != fingerprint:
            raise TokenRefused(LOST.format(device=device, folder=self._folder))
        self._checked = True

    async def vouch(self, user: str, device: str, fingerprint: str, sign: Sign) -> None:
        """Have the account sign this device, once; keys are made for an account that has none. Where the account has
        keys of another program, a person signs from there. Raises `NotNow`, and goes on without a signature where the
        homeserver refuses it."""
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
