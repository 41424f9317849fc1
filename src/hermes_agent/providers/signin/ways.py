"""OAuth sign-in to a model vendor: its facts, its token endpoint (first tokens and refresh), and the device flow."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import AuthRefused, MalformedReply, ServerFailed, Unreachable
from hermes_agent.host.http import Http

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """The facts of one sign-in.

    `issuer` is the address without a final slash; `issuer_env` names a variable that overrides it. `client_id` is
    the public OAuth client id. A code is typed at `page`. `headers` go with every model request; `{account}` in
    them is the account's id from the token's claim `account_claim` (`claim/inner`).
    """

    vendor: str
    title: str
    issuer: str
    issuer_env: str
    page: str
    token_path: str
    client_id: str
    redirect: str
    account_claim: str = ""
    headers: tuple[tuple[str, str], ...] = ()


# Signing in with ChatGPT: a code for one device, as Codex does it (github.com/openai/codex, codex-rs/login).
CHATGPT = SignIn(
    vendor="openai-codex",
    title="ChatGPT",
    issuer="https://auth.openai.com",
    issuer_env="OPENAI_AUTH_URL",
    page="/codex/device",
    token_path="/oauth/token",
    client_id="app_EMoamEEZ73f0CkXaXp7hrann",
    redirect="/deviceauth/callback",
    account_claim="https://api.openai.com/auth/chatgpt_account_id",
    headers=(("chatgpt-account-id", "{account}"), ("originator", "hermes")),
)


TOKEN_SECONDS = 20.0
SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Result of a token request. `lasts` is in seconds, 0: unknown."""

    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    expires: float = 0.0
    lasts: float = 0.0
    account: str = ""
    person: str = ""


class _Given(msgspec.Struct):
    access_token: str = ""
    refresh_token: str = ""
    id_token: str = ""
    expires_in: float = 0.0


class _Refusal(msgspec.Struct):
    error: Any = None
    error_description: str = ""
    message: str = ""


class Issuer:
    """Token endpoint of one vendor's sign-in."""

    def __init__(self, facts: SignIn, http: Http, *, issuer: str = "") -> None:
        self.facts = facts
        self.address = (issuer or facts.issuer).rstrip("/")
        self._http = http

    async def first(self, code: str, verifier: str) -> Tokens:
        """The tokens for an authorization code. Raises as `ask` does."""
        said = {
            "grant_type": "authorization_code",
            "client_id": self.facts.client_id,
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": self.address + self.facts.redirect,
        }
        return self._tokens(await self.ask(self.facts.token_path, said, form="form"))

    async def renewed(self, refresh: str) -> Tokens:
        """The refreshed tokens; without a new refresh token in the answer, the old one stays. Raises as `ask` does."""
        said = {"grant_type": "refresh_token", "client_id": self.facts.client_id, "refresh_token": refresh}
        given = self._tokens(await self.ask(self.facts.token_path, said))
        return given if given.refresh else replace(given, refresh=refresh)

    async def ask(self, path: str, said: Mapping[str, str], *, form: Literal["json", "form"] = "json") -> bytes:
        """Post a form; the body of a successful answer. Raises `Unreachable` where it is unknown whether the request
        arrived, `ServerFailed` for a failing or busy server, `AuthRefused` for every other error."""
        url = self.address + path
        try:
            async with asyncio.timeout(TOKEN_SECONDS):
                client = self._http.client(url)
                body: dict[str, Any] = {"json": dict(said)} if form == "json" else {"data": dict(said)}
                response = await client.post(url, headers={"accept": "application/json"}, **body)
        except TimeoutError as error:
            raise self._error(Unreachable, f"did not answer within {TOKEN_SECONDS:g} s.") from error
        except self._http.failures as error:
            raise self._error(Unreachable, f"cannot be reached ({str(error) or type(error).__name__}).") from error
        if response.status_code == 200:
            return response.content
        failing = response.status_code >= 500 or response.status_code == 429
        why = f"refused ({response.status_code}): {_reason(response)}."
        raise self._error(ServerFailed if failing else AuthRefused, why, status=response.status_code)

    def _tokens(self, content: bytes) -> Tokens:
        try:
            given = msgspec.json.decode(content, type=_Given)
        except msgspec.MsgspecError as error:
            raise self._error(MalformedReply, f"answered with no tokens ({error}).") from error
        if not given.access_token:
            raise self._error(MalformedReply, "answered with no tokens.")
        claims = {**claims_of(given.access_token), **claims_of(given.id_token)}
        expires = claims_of(given.access_token).get("exp")
        return Tokens(
            access=given.access_token,
            refresh=given.refresh_token,
            expires=float(expires) if isinstance(expires, int | float) else 0.0,
            lasts=given.expires_in,
            account=_claim(claims, self.facts.account_claim),
            person=_claim(claims, "email"),
        )

    def _error(
        self, kind: type[Unreachable | ServerFailed | AuthRefused | MalformedReply], what: str, status: int = 0
    ) -> Unreachable | ServerFailed | AuthRefused | MalformedReply:
        return kind(
            f"The sign-in of {self.facts.title} at {self.address} {what}", provider=self.facts.vendor, status=status
        )


def claims_of(token: str) -> Mapping[str, Any]:
    """The unverified claims of a JSON web token; empty for anything else."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        plain = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(plain, type=dict[str, Any])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return {}


def _claim(claims: Mapping[str, Any], name: str) -> str:
    """A claim, or with a slash one that stands inside of another; empty where there is none."""
    outer, _, inner = name.rpartition("/")
    found = claims.get(name)
    if found is None and outer and isinstance(claims.get(outer), dict):
        found = claims[outer].get(inner)
    return found if isinstance(found, str) else ""


def _reason(response: httpx2.Response) -> str:
    """What the server says about a refusal, in a few words."""
    try:
        said = msgspec.json.decode(response.content, type=_Refusal)
    except msgspec.MsgspecError:
        return " ".join(response.content[:SHOWN].decode("utf-8", "replace").split()) or "no reason given"
    code = said.error.get("message") or said.error.get("code") if isinstance(said.error, dict) else said.error
    words = said.error_description or said.message or (code if isinstance(code, str) else "")
    return words[:SHOWN].rstrip(". ") or "no reason given"


# As long as OpenAI's codes live.
DEVICE_SECONDS = 15 * 60.0
WAITING = (403, 404)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Instructions for the person: the page to open and the code to type."""

    page: str
    code: str


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
    device = _read(await issuer.ask(f"{accounts}/usercode", {"client_id": issuer.facts.client_id}), _Device)
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


def _read(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise MalformedReply(f"The sign-in answered with something else than expected ({error}).") from error
