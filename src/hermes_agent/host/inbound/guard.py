"""Checks of inbound requests: Host and Origin, body size, rate limits, signatures."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.inbound.message import Refused, Request

BODY_SECONDS = 60.0
"""A body that takes longer than this to arrive is not waited for."""
MINUTE = 60.0
LIMITLESS = 2**63
LOCAL = frozenset({"localhost"})
SAFE = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers that keep a browser from making a page out of an answer."""


def check_names(request: Request, names: Iterable[str]) -> None:
    """Raise `Refused` for a foreign Host or Origin.

    A page that uses DNS rebinding to reach this address still sends its own name in Host.
    """
    host = request.headers.get("host", "")
    if not is_ours(host, names):
        words = "This server does not have that name. Add its other names to `allowed_hosts`."
        raise Refused(421, words, code="wrong_host")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        raise Refused(403, "Pages of other sites are not let in.", code="wrong_origin")


def is_ours(host: str, names: Iterable[str]) -> bool:
    """Whether a Host header names this server: always for a numeric address, which no other page has as its name."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if "," in host:  # Two of them.
        return False
    if name in LOCAL or any(name == each.lower().strip("[]") for each in names):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@dataclass(slots=True)
class Room:
    """Shared memory budget in bytes for request bodies that are still being received, before authentication."""

    most: int
    taken: int = 0

    def take(self, size: int) -> None:
        """Reserve bytes for a piece. Raises `Refused` at the limit."""
        self.taken += size
        if self.taken > self.most:
            words = "Too much is being sent here at once. Try again."
            raise Refused(503, words, code="too_busy", headers={"retry-after": "1"})


async def read(request: Request, most: int, seconds: float = BODY_SECONDS, room: Room | None = None) -> bytes:
    """The whole body. Raises `Refused` where it is too large, too slow, compressed, or exceeds `room`."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "Send the body as it is, without Content-Encoding.", code="unsupported_encoding")
    length = request.headers.get("content-length", "0")
    size, found, room = int(length[:19]) if length.isdigit() else 0, bytearray(), room or Room(LIMITLESS)
    try:
        async with asyncio.timeout(seconds):
            while size <= most and (piece := await anext(request.pieces, None)) is not None:
                found += piece
                size = len(found)
                room.take(len(piece))
    except TimeoutError as error:
        raise Refused(408, "The request's body did not arrive in time.", code="request_timeout") from error
    finally:
        room.taken -= len(found)
    if size > most:
        words = f"The request is larger than {most:,} bytes (`api.max_body_mb`)."
        raise Refused(413, words, code="request_too_large")
    return bytes(found)


@dataclass(slots=True)
class Pace:
    """Rate limit as a token bucket: `per_minute` requests a minute, and as many in a burst."""

    per_minute: int
    room: float
    at: float

    def takes(self, now: float) -> bool:
        """Whether one more request is allowed now."""
        self.room = min(self.per_minute, self.room + (now - self.at) * self.per_minute / MINUTE)
        self.at = now
        if self.room < 1:
            return False
        self.room -= 1
        return True


def same(given: str, expected: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode("utf-8", "surrogateescape"))


def hmac_hex(key: str, data: bytes, algorithm: str = "sha256") -> str:
    """HMAC as hexadecimal digits."""
    return hmac.digest(key.encode(), data, algorithm).hex()


def hmac_base64(key: bytes, data: bytes, algorithm: str = "sha256") -> str:
    """HMAC as base64."""
    return base64.b64encode(hmac.digest(key, data, algorithm)).decode()


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal: the identity of a message whose sender gave none."""
    return hashlib.sha256(data).hexdigest()
