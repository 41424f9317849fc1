"""A token address whose refresh tokens can be used once, on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs

from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.providers.signin.ways import CHATGPT, SignIn


def jwt(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{body}.c2ln"


@dataclass(slots=True, kw_only=True)
class TokenServer:
    """Gives the next token for each refresh token that was not used yet. `hang` waits after a token was used up and
    before the answer, as a slow server does; `pending` is how often a device code is not typed yet."""

    refresh: str = "refresh-0"
    lasts: float = 3600.0
    hang: asyncio.Event | None = None
    used: asyncio.Event = field(default_factory=asyncio.Event)
    fail: int = 0
    pending: int = 1
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    renewals: int = 0
    url: str = ""

    @property
    def facts(self) -> SignIn:
        return replace(CHATGPT, issuer=self.url)

    async def handle(self, request: Request) -> Response:
        said = _said(request)
        self.asked.append((request.path, said))
        if request.path.endswith("/usercode"):
            return _json({"device_auth_id": "d1", "user_code": "ABCD-1234", "interval": "0.01"})
        if request.path.endswith("/deviceauth/token"):
            self.pending -= 1
            if self.pending >= 0:
                return _json({"error": "authorization_pending"}, 403)
            return _json({"authorization_code": "code-1", "code_challenge": "c", "code_verifier": "v"})
        if said.get("grant_type") == "authorization_code":
            return _json(self._tokens())
        return await self._renew(said["refresh_token"])

    async def _renew(self, refresh: str) -> Response:
        if self.fail:
            return _json({"error": "temporarily_unavailable"}, self.fail)
        if refresh != self.refresh:
            return _json({"error": {"code": "refresh_token_reused", "message": "Refresh token was already used"}}, 401)
        self.renewals += 1
        self.refresh = f"refresh-{self.renewals}"
        self.used.set()
        if self.hang is not None:
            await self.hang.wait()
        return _json(self._tokens())

    def _tokens(self) -> dict[str, object]:
        account = {"https://api.openai.com/auth": {"chatgpt_account_id": "acc-1"}, "email": "me@example.org"}
        return {
            "access_token": f"access-{self.renewals}",
            "refresh_token": self.refresh,
            "id_token": jwt(**account),
            "expires_in": self.lasts,
        }


def _said(request: Request) -> dict[str, str]:
    if "json" in request.headers.get("content-type", ""):
        return json.loads(request.body)
    return {name: values[0] for name, values in parse_qs(request.body.decode()).items()}


def _json(plain: object, status: int = 200) -> Response:
    return Response(status=status, headers={"content-type": "application/json"}, body=json.dumps(plain).encode())


@asynccontextmanager
async def token_server(**facts: object) -> AsyncIterator[TokenServer]:
    server = TokenServer(**facts)
    async with serve(server.handle) as served:
        server.url = served.url
        yield server
