"""The two OAuth flows: a device code that is typed on a page, and a code that a page shows."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import AuthRefused, MalformedReply, ServerFailed, Unreachable
from hermes_agent.providers.signin.tokens import Issuer, Tokens

# As long as OpenAI's codes live.
DEVICE_SECONDS = 15 * 60.0
WAITING = (403, 404)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Instructions for the person: the page to open and, for the device flow, the code to type."""

    page: str
    code: str = ""


class _Device(msgspec.Struct):
    device_auth_id: str
    user_code: str = ""
    usercode: str = ""
    interval: str | float = 5.0


class _Code(msgspec.Struct):
    authorization_code: str
    code_verifier: str


async def by_device(issuer: Issuer, show: Callable[[Shown], None], clock: Clock) -> Tokens:
    """Device flow: show a code, wait at most 15 minutes until the person has entered it, and get the tokens.

    Raises `AuthRefused` where nobody did, and as `Issuer.ask` does.
    """
    accounts = "/api/accounts/deviceauth"
    device = _read(await issuer.ask(f"{accounts}/usercode", {"client_id": issuer.client_id}), _Device)
    typed = device.user_code or device.usercode
    show(Shown(page=issuer.address + issuer.facts.page, code=typed))
    end = clock.monotonic() + DEVICE_SECONDS
    while clock.monotonic() < end:
        try:
            said = {"device_auth_id": device.device_auth_id, "user_code": typed}
            code = _read(await issuer.ask(f"{accounts}/token", said), _Code)
        except (AuthRefused, Unreachable, ServerFailed) as error:
            if isinstance(error, AuthRefused) and error.status not in WAITING:
                raise
            await clock.sleep(float(device.interval))
            continue
        return await issuer.first(code.authorization_code, code.code_verifier)
    raise AuthRefused("Nobody entered the code within 15 minutes: `hermes login` shows a new one.")


async def by_code(issuer: Issuer, show: Callable[[Shown], None], ask: Callable[[], Awaitable[str]]) -> Tokens:
    """Code flow: show a page, ask for the code that it gives (or the whole redirect URL), and get the tokens.

    Raises `AuthRefused` for an answer that belongs to another sign-in, and as `Issuer.ask` does.
    """
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    query = {
        "code": "true",
        "response_type": "code",
        "client_id": issuer.client_id,
        "redirect_uri": issuer.address + issuer.facts.redirect,
        "scope": issuer.facts.scope,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "state": state,
    }
    show(Shown(page=f"{issuer.address}{issuer.facts.page}?{urlencode(query)}"))
    pasted = _pasted(await ask())
    if pasted.state and pasted.state != state:
        raise AuthRefused("This code belongs to another sign-in: `hermes login` begins a new one.")
    return await issuer.first(pasted.code, verifier)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pasted:
    code: str = field(repr=False)
    state: str = ""


def _pasted(text: str) -> _Pasted:
    """A code out of what a person pastes: `code`, `code#state`, or the address with both in its query."""
    text = text.strip()
    if "://" in text:
        query = parse_qs(urlsplit(text).query)
        return _Pasted(code=query.get("code", [""])[0], state=query.get("state", [""])[0])
    code, _, state = text.partition("#")
    return _Pasted(code=code, state=state)


def _read(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise MalformedReply(f"The sign-in answered with something else than expected ({error}).") from error
