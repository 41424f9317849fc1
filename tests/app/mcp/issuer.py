"""An MCP server on loopback that wants a sign-in, and its issuer: written from RFC 6749, 7591, 8414 and 9728. It
rotates refresh tokens, counts renewals, and forgets registrations when told to, or (`prunes`) all but the one that was
used last. A refresh token that is used twice ends the sign-in."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit


class Issuer:
    """One address that is server and issuer. `lasts` is how long an access token lasts, in seconds."""

    def __init__(self, lasts: float = 3600) -> None:
        self.lasts = lasts
        self.clients: set[str] = set()
        self.access: set[str] = set()
        self.refresh: set[str] = set()
        self.revoked: list[str] = []
        self.prunes = False
        self.renewals: list[float] = []
        self.registered = self.authorized = self.renewed = self.reused = 0
        self._numbers = itertools.count(1)
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            method, target, _ = line.decode().split(" ")
            headers = {}
            while (header := await reader.readline()) not in (b"\r\n", b""):
                name, _, value = header.decode().partition(":")
                headers[name.lower()] = value.strip()
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            status, more, answer = self.answer(method, target, headers, body)
            content = json.dumps(answer).encode() if answer is not None else b""
            kind = "Content-Type: application/json\r\n" if content else ""
            lines = "".join(f"{name}: {value}\r\n" for name, value in more.items())
            writer.write(
                f"HTTP/1.1 {status} X\r\n{kind}{lines}Content-Length: {len(content)}\r\n\r\n".encode() + content
            )
            await writer.drain()
        writer.close()

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, dict, object]:
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if path == "/mcp":
            return self.mcp(method, headers, body)
        if path.startswith("/.well-known/oauth-protected-resource"):
            return 200, {}, {"resource": f"{self.url}/mcp", "authorization_servers": [self.url]}
        if path.startswith("/.well-known/oauth-authorization-server"):
            return 200, {}, self.metadata()
        form = {name: values[0] for name, values in (query or parse_qs(body.decode())).items()}
        steps = {"/register": self.register, "/authorize": self.authorize, "/token": self.token, "/revoke": self.revoke}
        if path not in steps:
            return 404, {}, {}
        return steps[path](json.loads(body) if path == "/register" else form)

    def revoke(self, form: dict[str, str]) -> tuple[int, dict, object]:
        self.revoked.append(form["token"])
        return 200, {}, {}

    def metadata(self) -> dict:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "revocation_endpoint": f"{self.url}/revoke",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }

    def register(self, wanted: dict) -> tuple[int, dict, object]:
        self.registered += 1
        client = f"client{next(self._numbers)}"
        self.clients = {client, *(() if self.prunes else self.clients)}
        return 201, {}, {**wanted, "client_id": client, "token_endpoint_auth_method": "none"}

    def authorize(self, query: dict[str, str]) -> tuple[int, dict, object]:
        self.authorized += 1
        if query["client_id"] not in self.clients:
            return 400, {}, {"error": "invalid_client"}
        return 302, {"Location": f"{query['redirect_uri']}?code=c1&state={query['state']}"}, None

    def token(self, form: dict[str, str]) -> tuple[int, dict, object]:
        if form["client_id"] not in self.clients:
            return 401, {}, {"error": "invalid_client"}
        if form["grant_type"] == "refresh_token":
            self.renewed += 1
            self.renewals.append(time.monotonic())
            if form["refresh_token"] not in self.refresh:
                self.reused += 1
                self.refresh.clear()
                return 400, {}, {"error": "invalid_grant"}
            self.refresh.discard(form["refresh_token"])
        number = next(self._numbers)
        self.access, _ = {f"access-token-{number}"}, self.refresh.add(f"refresh-token-{number}")
        found = {"access_token": f"access-token-{number}", "refresh_token": f"refresh-token-{number}"}
        return 200, {}, {**found, "token_type": "Bearer", "expires_in": self.lasts}

    def mcp(self, method: str, headers: dict[str, str], body: bytes) -> tuple[int, dict, object]:
        if headers.get("authorization", "").removeprefix("Bearer ") not in self.access:
            where = f"{self.url}/.well-known/oauth-protected-resource/mcp"
            return 401, {"WWW-Authenticate": f'Bearer resource_metadata="{where}"'}, {}
        if method != "POST":
            return 405, {}, {}
        message = json.loads(body)
        if "id" not in message:
            return 202, {}, None
        tool = {"name": "add", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "signed", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": "5"}]},
        }
        if message["method"] not in results:
            error = {"code": -32601, "message": "Method not found"}
            return 200, {}, {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return 200, {}, {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}


@asynccontextmanager
async def issuing(lasts: float = 3600) -> AsyncIterator[Issuer]:
    issuer = Issuer(lasts)
    server = await asyncio.start_server(issuer.serve, "127.0.0.1", 0)
    issuer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield issuer
