"""Access tokens for Google Cloud through google-auth, with the application default credentials.

They come from the file in GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, or the service
account of the machine, in Google's order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import AuthRefused
from hermes_agent.host.late import libraries
from hermes_agent.providers.outcomes import Wire, failure
from hermes_agent.providers.route import Route

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
NO_GOOGLE_AUTH = "cannot be asked: a token needs google-auth (`pip install google-auth`, or the extra `vertex`)."
TOKEN_SECONDS = 30.0


async def sign(route: Route, url: str, _wire: Wire) -> dict[str, str]:
    """The headers with a fresh token. Raises `AuthRefused` where credentials are missing or expired."""
    return await asyncio.to_thread(_signed, route, url)


def _signed(route: Route, url: str) -> dict[str, str]:
    """Getting a token asks another machine: not on the event loop."""
    headers: dict[str, str] = {}
    try:
        _credentials().before_request(_ask, "POST", url, headers)
    except ImportError as error:
        raise failure(route, AuthRefused, NO_GOOGLE_AUTH) from error
    except libraries.google_auth.exceptions.GoogleAuthError as error:
        raise failure(route, AuthRefused, f"cannot be asked: {_sentence(error)}.") from error
    return headers


def _sentence(error: Exception) -> str:
    return str(error.args[0] if error.args else error).rstrip(". ")


@cache
def _credentials() -> Any:  # noqa: ANN401 - google-auth has no types
    """One for the process: it keeps its token until that expires."""
    credentials, _project = libraries.google_auth.default(scopes=SCOPES)
    return credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """An HTTP response in the form that google-auth expects."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def _ask(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **_: object,
) -> _Answer:
    """Its way to the token server, so that it needs no HTTP library of its own."""
    module = libraries.httpx2
    try:
        answer = module.request(
            method, url, content=body, headers=dict(headers or {}), timeout=timeout or TOKEN_SECONDS
        )
    except module.HTTPError as error:
        raise libraries.google_auth.exceptions.TransportError(error) from error
    return _Answer(status=answer.status_code, headers=answer.headers, data=answer.content)
