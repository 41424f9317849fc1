"""File `mcp-auth.json` of a home: tokens, registrations and issuers of the MCP servers that one signed in to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes_agent.core.section import short_hash
from hermes_agent.host.locks import change_under
from hermes_agent.host.paths import Home, read_small, write_private

FILE = "mcp-auth.json"


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in to one server, each part as JSON (empty: none). `expires` is in seconds since 1970, 0: unknown."""

    tokens: str = ""
    expires: float = 0.0
    client: str = ""
    metadata: str = ""


class Logins:
    """The sign-ins of a home, by the servers' addresses. `hide` gets each token that is read, to be redacted."""

    def __init__(self, home: Home, hide: Callable[..., None]) -> None:
        self._path, self._locks, self._hide = home.root / FILE, home.locks, hide

    def get(self, url: str) -> Login:
        """The sign-in to a server; an empty one where there is none. Blocks for a moment."""
        return self._hidden(self._all().get(url, Login()))

    async def change(self, url: str, change: Callable[[Login], Login]) -> None:
        """Change the sign-in to a server, on the disk when this returns."""

        def work() -> None:
            kept = self._all()
            kept[url] = self._hidden(change(kept.get(url, Login())))
            write_private(self._path, msgspec.json.format(msgspec.json.encode(kept)))

        await change_under(self._path.with_suffix(".lock"), work)

    async def forget(self, url: str, *, client: bool) -> None:
        """Forget the tokens of a server, and with `client` the registration too."""
        await self.change(url, lambda old: Login(client="" if client else old.client))

    def lock(self, url: str) -> Path:
        """The lock file under which tokens of a server are renewed."""
        return self._locks / f"mcp-{short_hash(url)}.lock"

    def _hidden(self, login: Login) -> Login:
        for text in (login.tokens, login.client):
            plain = msgspec.json.decode(text) if text else {}
            self._hide("MCP_SIGN_IN", *(str(plain[key]) for key in plain if key.endswith(("token", "secret"))))
        return login

    def _all(self) -> dict[str, Login]:
        content = read_small(self._path)
        return msgspec.json.decode(content, type=dict[str, Login]) if content else {}
