"""Sign-in to MCP servers: the SDK's OAuth over tokens kept in the home, refreshed by one process at a time.

Needs the extra `mcp`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NoReturn, TypeVar

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken as Tokens,
)
from pydantic import BaseModel, ValidationError

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.locks import held
from hermes_agent.tools.mcp.logins import Login, Logins
from hermes_agent.tools.mcp.settings import Server

EARLY = 30.0
"""Seconds before a token's end in which it is renewed."""
REFUSED = 401
DOCUMENT = "https://"
"""So begins a client id that is the address of a document about the client."""
RENEW_SECONDS = 10.0
"""How long the issuer may take to renew or revoke tokens."""
M = TypeVar("M", bound=BaseModel)


class SignInNeeded(HermesError):
    """A server wants a sign-in that only a person can make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """How a person signs in: `show` gets the address to open, `answer` waits for where it led, `redirect` is the
    address to which it leads."""

    redirect: str
    show: Callable[[str], Awaitable[None]]
    answer: Callable[[], Awaitable[tuple[str, str | None, str | None]]]


class _Storage:
    """The SDK's `TokenStorage` over one server's row of the file."""

    def __init__(self, logins: Logins, server: Server, clock: Clock, client_secret: str) -> None:
        self._logins, self._url, self._clock = logins, server.settings.url, clock
        own = server.settings.client_id
        self._own, self._secret = "" if own.startswith(DOCUMENT) else own, client_secret

    def login(self) -> Login:
        """The row as it is now."""
        return self._logins.get(self._url)

    async def get_tokens(self) -> Tokens | None:
        """See the SDK."""
        return _read(Tokens, self.login().tokens)

    async def set_tokens(self, tokens: Tokens) -> None:
        """See the SDK. On the disk before a request uses them."""
        expires = self._clock.now() + tokens.expires_in if tokens.expires_in else 0.0
        text = tokens.model_dump_json(exclude_none=True)
        await self._logins.change(self._url, lambda old: msgspec.structs.replace(old, tokens=text, expires=expires))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """See the SDK: the settings' client, else the stored registration."""
        if self._own:
            method = "client_secret_basic" if self._secret else "none"
            return OAuthClientInformationFull(
                client_id=self._own, client_secret=self._secret or None, token_endpoint_auth_method=method
            )
        return _read(OAuthClientInformationFull, self.login().client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """See the SDK."""
        text = client_info.model_dump_json(exclude_none=True)
        await self._logins.change(self._url, lambda old: msgspec.structs.replace(old, client=text))

    async def set_metadata(self, metadata: OAuthMetadata) -> None:
        """Keep where the issuer renews tokens."""
        text = metadata.model_dump_json(exclude_none=True)
        await self._logins.change(self._url, lambda old: msgspec.structs.replace(old, metadata=text))


class StoredSignIn(OAuthClientProvider):
    """The SDK's flow, with what it forgets between processes: when tokens end and where they are renewed. Before each
    renewal it takes a lock of all processes and reads again, so that one refresh token is used once. Without a `person`
    it raises `SignInNeeded` where a person is needed."""

    def __init__(self, server: Server, logins: Logins, clock: Clock, secret: str, person: Person | None) -> None:
        redirect = person.redirect if person else "http://127.0.0.1/callback"
        own = server.settings.client_id
        document = own if own.startswith(DOCUMENT) else ""
        self._kept = _Storage(logins, server, clock, secret)
        self._server, self._logins, self._lock = server, logins, logins.lock(server.settings.url)
        super().__init__(
            server_url=server.settings.url,
            client_metadata=OAuthClientMetadata(
                client_name="Hermes",
                redirect_uris=[redirect],  # type: ignore[list-item]  # pydantic reads the text
                scope=server.settings.scope or None,
            ),
            storage=self._kept,
            redirect_handler=person.show if person else self._refuse,
            callback_handler=_answering(person) if person else self._refuse,
            client_metadata_url=document or None,
        )

    async def _refuse(self, *_: object) -> NoReturn:
        raise SignInNeeded(f"sign in: hermes mcp login {self._server.name}")

    async def _initialize(self) -> None:
        await super()._initialize()
        login = self._kept.login()
        if metadata := _read(OAuthMetadata, login.metadata):
            self.context.oauth_metadata = metadata
        self.context.token_expiry_time = login.expires - EARLY if login.expires else None

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        if self.context.oauth_metadata is not None:
            await self._kept.set_metadata(self.context.oauth_metadata)

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if not self._initialized:
            await self._initialize()
        if not self.context.is_token_valid():
            await self._renew("")
        before = self.context.current_tokens.access_token if self.context.current_tokens else ""
        flow = super()._auth_flow(request)
        response = yield await flow.__anext__()
        if response.status_code == REFUSED and before:
            await self._renew(before)
            if self.context.is_token_valid():
                self._add_auth_header(request)
                response = yield request
        try:
            while True:
                response = yield await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _renew(self, used: str) -> None:
        """Renew the tokens, unless another process did meanwhile; `used` is one that the server took no more. Forgets
        those that cannot be renewed, and a registration that the issuer no longer knows."""
        async with held(self._lock), httpx2.AsyncClient(timeout=RENEW_SECONDS) as http:
            await self._initialize()
            now = self.context.current_tokens
            is_other = now is None or (self.context.is_token_valid() and now.access_token != used)
            if is_other or not self.context.can_refresh_token():
                return
            response = await http.send(await self._refresh_token())
            if not await self._handle_refresh_response(response) and response.status_code < 500:
                is_gone = any(error in response.text for error in ("invalid_client", "unauthorized_client"))
                await self._logins.forget(self._server.settings.url, client=is_gone)
                await self._initialize()


def _answering(person: Person) -> Callable[[], Awaitable[AuthorizationCodeResult]]:
    async def wait() -> AuthorizationCodeResult:
        code, state, issuer = await person.answer()
        return AuthorizationCodeResult(code=code, state=state, iss=issuer)

    return wait


def _read(kind: type[M], text: str) -> M | None:
    try:
        return kind.model_validate_json(text) if text else None
    except ValidationError:
        return None


async def revoke(logins: Logins, url: str) -> bool:
    """Have the issuer revoke the tokens for an address, where it can; whether it did."""
    login = logins.get(url)
    tokens, metadata = _read(Tokens, login.tokens), _read(OAuthMetadata, login.metadata)
    client = _read(OAuthClientInformationFull, login.client)
    if tokens is None or metadata is None or metadata.revocation_endpoint is None:
        return False
    data = {"token": tokens.refresh_token or tokens.access_token, "client_id": client.client_id if client else ""}
    if client and client.client_secret:
        data["client_secret"] = client.client_secret
    async with httpx2.AsyncClient(timeout=RENEW_SECONDS) as http:
        try:
            return (await http.post(str(metadata.revocation_endpoint), data=data)).is_success
        except httpx2.HTTPError:
            return False
