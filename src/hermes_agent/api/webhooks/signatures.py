"""Webhook signature verification: GitHub, GitLab, Svix and generic HMAC schemes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

from hermes_agent.api.problems import FINAL
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.inbound.message import Refused, digest, hmac_base64, hmac_hex, same

SVIX_PREFIX = "whsec_"
LONGEST = 500
"""Characters of a header that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """A webhook request with a valid signature. `identity` is equal for a redelivery of the same request; `event` is
    the event name from the headers, empty if they have none."""

    identity: str
    event: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A webhook request whose signature is to be verified; header names in lower case; `now` in seconds since 1970,
    `skew`: largest accepted difference of a signed time from `now`."""

    headers: Mapping[str, str]
    body: bytes
    now: float
    skew: float

    def header(self, *names: str) -> str:
        """The first of these headers that is present."""
        return next((self.headers[name][:LONGEST] for name in names if name in self.headers), "")


def github(request: Signed, secret: str) -> Proven:
    """`X-Hub-Signature-256`: HMAC-SHA256 of the body. The delivery's id is not signed: the body is the identity."""
    expected = f"sha256={hmac_hex(secret, request.body)}"
    _check(request.header("x-hub-signature-256"), expected)
    return Proven(identity=digest(request.body), event=request.header("x-github-event"))


def gitlab(request: Signed, secret: str) -> Proven:
    """`X-Gitlab-Token`: the secret itself; or a signing token's signature, as Svix writes it."""
    if request.header("webhook-signature"):
        return Proven(identity=svix(request, secret).identity, event=request.header("x-gitlab-event"))
    _check(request.header("x-gitlab-token"), secret)
    identity = request.header("idempotency-key", "x-gitlab-event-uuid", "x-gitlab-webhook-uuid")
    return Proven(identity=digest(f"{identity}.".encode() + request.body), event=request.header("x-gitlab-event"))


def svix(request: Signed, secret: str) -> Proven:
    """`svix-id`, `svix-timestamp`, `svix-signature` (or `webhook-...`): HMAC-SHA256 of `id.timestamp.body`, with the
    base64 key behind `whsec_`."""
    name, time = request.header("svix-id", "webhook-id"), request.header("svix-timestamp", "webhook-timestamp")
    _fresh(request, time)
    expected = _svix_mac(secret, f"{name}.{time}.".encode() + request.body)
    given = request.header("svix-signature", "webhook-signature").split()
    if not name or not any(same(each, expected) for each in given):
        raise forged()
    return Proven(identity=digest(name.encode()))


def generic(request: Signed, secret: str) -> Proven:
    """`X-Webhook-Timestamp` and `X-Webhook-Signature: sha256=...`: HMAC-SHA256 of `timestamp.body`."""
    time = request.header("x-webhook-timestamp")
    _fresh(request, time)
    expected = f"sha256={hmac_hex(secret, f'{time}.'.encode() + request.body)}"
    _check(request.header("x-webhook-signature"), expected)
    return Proven(identity=digest(expected.encode()))


Scheme = Callable[[Signed, str], Proven]
SCHEMES: Mapping[str, Scheme] = {"github": github, "gitlab": gitlab, "svix": svix, "generic": generic}


def signed(scheme: str, secret: str, body: bytes, now: float, event: str) -> dict[str, str]:
    """Sign a test request: its headers in that scheme."""
    time = str(int(now))
    match scheme:
        case "github":
            return {"x-hub-signature-256": f"sha256={hmac_hex(secret, body)}", "x-github-event": event}
        case "gitlab":
            return {"x-gitlab-token": secret, "x-gitlab-event": event}
        case "svix":
            name = f"msg_{digest(body)[:16]}"
            mac = _svix_mac(secret, f"{name}.{time}.".encode() + body)
            return {"svix-id": name, "svix-timestamp": time, "svix-signature": mac}
        case _:
            mac_hex = hmac_hex(secret, f"{time}.".encode() + body)
            return {"x-webhook-timestamp": time, "x-webhook-signature": f"sha256={mac_hex}"}


def forged() -> Refused:
    """The error for a missing or wrong signature."""
    return Refused(401, "The signature is missing or wrong.", code="wrong_signature", headers=FINAL)


def _check(given: str, expected: str) -> None:
    if not same(given, expected):
        raise forged()


def _fresh(request: Signed, time: str) -> None:
    """Raise `Refused` if the signed time is too far from now."""
    if not (time.isascii() and time.isdigit() and len(time) <= len("10000000000")):
        raise forged()
    away = abs(request.now - int(time))
    if away > request.skew:
        words = (
            f"The request was signed {away:.0f} s from now; at most {request.skew:.0f} s are let in. Check the clocks."
        )
        raise Refused(401, words, code="stale_signature", headers=FINAL)


def _svix_mac(secret: str, signed: bytes) -> str:
    try:
        key = base64.b64decode(secret.removeprefix(SVIX_PREFIX), validate=True)
    except ValueError:
        key = secret.encode()
    return f"v1,{hmac_base64(key, signed)}"
