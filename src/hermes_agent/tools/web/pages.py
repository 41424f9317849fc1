"""Fetches pages: every hop's address checked, within limits of size and time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.host.http import Http
from hermes_agent.tools.web.addresses import Addresses, Target
from hermes_agent.version import VERSION

if TYPE_CHECKING:
    import httpx2

HOPS = 5
HEADERS = {
    "User-Agent": f"Mozilla/5.0 (compatible; Hermes/{VERSION})",
    "Accept": "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,*/*;q=0.5",
    "Accept-Language": "en;q=0.8,*;q=0.5",
}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# What can be shown as text, beside everything that begins with `text/`.
READABLE = ("text/", "application/pdf", "application/json", "application/xml", "application/xhtml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a site sent: from where in the end, its media type and charset (lower case, empty where not told)."""

    url: str
    media: str
    charset: str
    body: bytes


class Pages:
    """Fetches by `http`, from where `addresses` allows. `seconds` and `most` bytes hold for a page with its
    redirects."""

    def __init__(self, http: Http, addresses: Addresses, *, seconds: float, most: int) -> None:
        self._http = http
        self._addresses = addresses
        self._seconds = seconds
        self._most = most

    async def fetch(self, url: str, seconds: float | None = None) -> Page:
        """The page. Raises `ToolError` with what went wrong in a sentence; `seconds` may shorten the limit."""
        limit = self._seconds if seconds is None else min(seconds, self._seconds)
        try:
            async with asyncio.timeout(limit):
                return await self._follow(url)
        except TimeoutError as error:
            raise ToolError(f"{url} did not answer within {limit:.0f} s.") from error
        except self._http.failures as error:
            raise ToolError(f"{url} cannot be reached: {str(error) or type(error).__name__}.") from error

    async def _follow(self, url: str) -> Page:
        for _ in range(HOPS + 1):
            target = await self._addresses.check(url)
            found = await self._get(target)
            if isinstance(found, Page):
                return found
            url = urljoin(target.url, found)
        raise ToolError(f"{url} leads on and on ({HOPS} redirects).")

    async def _get(self, target: Target) -> Page | str:
        """The page, or where it moved."""
        client = self._http.client(target.connect)
        headers = {**HEADERS, "Host": target.host}
        asked = client.stream("GET", target.connect, headers=headers, extensions={"sni_hostname": target.name})
        async with asked as response:
            if response.status_code in REDIRECTS and "location" in response.headers:
                return str(response.headers["location"])
            if response.status_code >= 400:
                raise ToolError(f"{target.url} answered {response.status_code} {response.reason_phrase}.".rstrip())
            media, charset = _content_type(response)
            if not media.startswith(READABLE) and not media.endswith(("+xml", "+json")):
                raise ToolError(f"{target.url} is {media}, which cannot be shown as text.")
            return Page(url=target.url, media=media, charset=charset, body=await self._body(target, response))

    async def _body(self, target: Target, response: httpx2.Response) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > self._most:
                raise ToolError(
                    f"{target.url} has more than {self._most >> 20} MB (`web.max_mb`).",
                    hint="Download it with the terminal where that is allowed.",
                )
            parts.append(chunk)
        return b"".join(parts)


def _content_type(response: httpx2.Response) -> tuple[str, str]:
    media, _, rest = str(response.headers.get("content-type", "text/html")).partition(";")
    charset = next(
        (each.partition("=")[2] for each in rest.split(";") if each.strip().lower().startswith("charset=")), ""
    )
    return media.strip().lower() or "text/html", charset.strip(" \"'").lower()
