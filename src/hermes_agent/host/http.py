"""Outgoing HTTP: clients shared by all callers of an event loop, one for each kind of address (`https` or not,
loopback or not), created on first use.

Importing httpx2 costs about 110 ms, so it is loaded on the first use. The clients limit the time to connect; the
caller limits the response by the run's deadline.

Proxies: the machine's proxy and certificate variables (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`) apply to other
machines; loopback addresses are always reached directly, also where `NO_PROXY` lacks them. Passwords of `~/.netrc`
are never sent.
"""

from __future__ import annotations

import asyncio
import ssl
import weakref
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes_agent.host.late import late, libraries

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 15.0
MAX_CONNECTIONS = 200
KEPT_CONNECTIONS = 50
KEPT_SECONDS = 60.0
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class Http:
    """The HTTP clients of this process. Redirects are not followed, so that a key goes only where it was sent."""

    def __init__(self) -> None:
        self._clients: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[tuple[bool, bool], httpx2.AsyncClient]
        ] = weakref.WeakKeyDictionary()

    def client(self, url: str) -> httpx2.AsyncClient:
        """The running loop's client for this address; certificates are read only for the first `https` one."""
        parts = urlsplit(url)
        kind = (parts.scheme == "https", (parts.hostname or "") in LOOPBACK_HOSTS)
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if kind not in clients:
            clients[kind] = _new_client(secure=kind[0], local=kind[1])
        return clients[kind]

    @cached_property
    def failures(self) -> tuple[type[Exception], ...]:
        """Exceptions for failures of the network rather than of the response; for an `except` clause."""
        module = libraries.httpx2
        return (module.TransportError, module.DecodingError, module.StreamError, module.InvalidURL)

    @cached_property
    def unsent(self) -> tuple[type[Exception], ...]:
        """Those of `failures` after which nothing was sent, because no connection was made."""
        module = libraries.httpx2
        return (module.ConnectError, module.ConnectTimeout, module.InvalidURL, module.UnsupportedProtocol)

    async def close(self) -> None:
        """Close the running loop's connections."""
        for client in self._clients.pop(asyncio.get_running_loop(), {}).values():
            await client.aclose()


def _new_client(*, secure: bool, local: bool) -> httpx2.AsyncClient:
    module = libraries.httpx2
    # Without certificates to check against, the context of the plain client refuses every https server.
    empty = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    verify = module.create_ssl_context(trust_env=not local) if secure else empty
    timeout = module.Timeout(None, connect=CONNECT_SECONDS)
    client: httpx2.AsyncClient
    # Which proxy an address goes through is for the client to say, a pool for each.
    if not local and late("urllib.request:getproxies")():
        limits = module.Limits(
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=KEPT_CONNECTIONS,
            keepalive_expiry=KEPT_SECONDS,
        )
        client = module.AsyncClient(verify=verify, timeout=timeout, limits=limits)
        return client
    transport = late("hermes_agent.host.connections:Transport")(verify, MAX_CONNECTIONS, KEPT_SECONDS)
    client = module.AsyncClient(transport=transport, verify=verify, trust_env=False, timeout=timeout)
    return client
