"""What stands before every endpoint: the Host check, the limits of a browser, counting, and errors as answers."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hermes_agent.api.endpoint_app import JSON, whole
from hermes_agent.api.events import written
from hermes_agent.api.problems import Problem, problem_of

log = logging.getLogger(__name__)

LOCAL = frozenset({"localhost"})
SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
Answered = Callable[[str, str, int, float], None]


class Guard:
    """Lets a request in that was sent to one of our own names, and sees to it that every request has its answer.

    A page that made a browser believe that its own name is our address (DNS rebinding) still says its own name in Host.
    Without `names` it lets every name in. `answered` is told of each answer: method, the endpoint's path, status,
    seconds.
    """

    def __init__(
        self, inside: ASGIApp, names: Callable[[], Iterable[str]] | None, now: Callable[[], float], answered: Answered
    ) -> None:
        self._inside = inside
        self._names = names
        self._now = now
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        began, status = self._now(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *SAFE]
                self._answered(scope["method"], scope.get("hermes_path", "other"), status, self._now() - began)
            await send(message)

        try:
            self._check(Headers(scope=scope))
            scope["app"] = (
                self  # Then the router raises what it cannot answer, instead of answering in words of its own.
            )
            await self._inside(scope, receive, sending)
        except Exception as error:  # Boundary: one HTTP request
            problem = problem_of(error)
            if problem.status == 500:
                log.exception("%s %s failed", scope["method"], scope.get("hermes_path", "other"))
            if not status:
                await whole(sending, problem.status, JSON, written(problem.body), problem.headers)

    def _check(self, headers: Headers) -> None:
        """Raise `Problem` for a Host or Origin that is not ours."""
        if self._names is None:
            return
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.is_ours(hosts[0]):
            raise Problem(
                421,
                "That is no name of this server. Names that it has besides go to `allowed_hosts`.",
                code="wrong_host",
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != hosts[0].lower():
            raise Problem(403, "Pages of other sites are not let in.", code="wrong_origin")

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this server: an address of numbers does (no other page has one as its name)."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if name in LOCAL or any(name == each.lower().strip("[]") for each in (self._names() if self._names else ())):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True
