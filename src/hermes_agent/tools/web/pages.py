"""Fetches web pages with size and time limits, only from public addresses: each redirect is checked (SSRF
protection)."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import BadArguments, Refused, ToolError
from hermes_agent.host.http import Http
from hermes_agent.version import VERSION

if TYPE_CHECKING:
    import httpx2

PORTS = {"http": 80, "https": 443}
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
# Where clouds tell a machine its own keys; the others are link-local or private anyway.
METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"))
)
# IPv6 networks whose addresses carry one of IPv4, and where it begins (RFC 6052, 3056, 4380).
_CARRIERS = (
    (ipaddress.ip_network("64:ff9b::/96"), 96),
    (ipaddress.ip_network("64:ff9b:1::/48"), 96),
    (ipaddress.ip_network("2002::/16"), 16),
    (ipaddress.ip_network("::/96"), 96),
)
_TEREDO = ipaddress.ip_network("2001::/32")
_UNFIT = re.compile(r"[\x00-\x20\x7f\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL that passed the SSRF check: `url` for display, `connect` with the checked IP address; `host` is the `Host`
    header, `name` the TLS server name."""

    url: str
    connect: str
    host: str
    name: str


class Addresses:
    """Checks URLs against SSRF. `blocked`: sites as globs; `private`: hosts (`name` or `name:port`) that may be
    private.

    A name is resolved once and the connection goes to the checked IP address, so that a second lookup cannot differ.
    """

    def __init__(
        self, *, blocked: Sequence[str] = (), private: Sequence[str] = (), resolve: Resolve | None = None
    ) -> None:
        self._blocked = tuple(site.lower().strip(".") for site in blocked)
        self._private = frozenset(host.lower() for host in private)
        self._resolve = resolve or look_up

    async def check(self, url: str) -> Target:
        """Check a URL and resolve its host. Raises `BadArguments` if it is no web URL, `Refused`, and `ToolError` if
        the name does not exist."""
        parts = parsed(url)
        host, port = _host(parts), parts.port or PORTS[parts.scheme]
        if self._is_blocked(host):
            raise Refused(f"{host} is on the list of blocked sites (`web.blocked`).")
        literal = number_of(host)
        numbers = [literal] if literal else [_number(found) for found in await self._resolve(host, port)]
        allowed = bool({host, f"{host}:{port}"} & self._private)
        for number in numbers:
            if why := objection(number, private=allowed):
                raise Refused(f"{host} was refused: {number} is {why}.", hint=_WAY_OUT)
        if not numbers:
            raise ToolError(f"{host} does not exist.", hint="Check the address, or search for it.")
        return _target(parts, host, numbers[0])

    def _is_blocked(self, host: str) -> bool:
        ends = [host, *(host[at + 1 :] for at, letter in enumerate(host) if letter == ".")]
        return any(fnmatchcase(end, site) for end in ends for site in self._blocked)


_WAY_OUT = "Only public sites can be read. The owner may name hosts under `web.private_hosts`."


def parsed(url: str) -> SplitResult:
    """Parse a web URL. Raises `BadArguments` with what is wrong."""
    try:
        if _UNFIT.search(url):
            raise ValueError("it holds a space, a backslash or a control character")
        parts = urlsplit(url)
        if parts.scheme.lower() not in PORTS:
            raise ValueError("only http:// and https:// are read")
        if "@" in parts.netloc:
            raise ValueError("it names a user before its host")
        if not parts.hostname:
            raise ValueError("it has no host")
        if parts.port == 0:
            raise ValueError("its port is 0")
        _host(parts)
    except ValueError as error:
        raise BadArguments(f"`{url[:200]}` is not an address that can be read: {error} - at `$.url`") from error
    return parts


def objection(number: IpAddress, *, private: bool = False) -> str:
    """Why this IP address may not be reached; empty if it may. `private`: the owner named the host."""
    carried = _carried(number)
    if carried is not None:
        return objection(carried, private=private)
    if number in METADATA:
        return "where a cloud keeps its machine's keys"
    if number.is_link_local or number.is_multicast or number.is_unspecified or _is_broadcast(number):
        return "no address of a site"
    if not private and (not number.is_global or getattr(number, "is_site_local", False)):
        return "in a private network, or this machine"
    return ""


def _carried(number: IpAddress) -> IpAddress | None:
    """The IPv4 address embedded in an IPv6 one."""
    if not isinstance(number, ipaddress.IPv6Address) or int(number) <= 1:
        return None
    if number.ipv4_mapped is not None:
        return number.ipv4_mapped
    if number in _TEREDO:
        return ipaddress.IPv4Address(~int(number) & 0xFFFFFFFF)
    for network, start in _CARRIERS:
        if number in network:
            return ipaddress.IPv4Address(int(number) >> (128 - start - 32) & 0xFFFFFFFF)
    return None


def _is_broadcast(number: IpAddress) -> bool:
    return str(number) == "255.255.255.255"


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".").lower()
    if ":" in host:
        return host
    return host if host.isascii() else host.encode("idna").decode()


def _number(text: str) -> IpAddress:
    return ipaddress.ip_address(text.partition("%")[0])


def _target(parts: SplitResult, host: str, number: IpAddress) -> Target:
    port = f":{parts.port}" if parts.port else ""
    shown, reached = (f"[{each}]" if ":" in each else each for each in (host, str(number)))
    path = parts.path or "/"
    return Target(
        url=urlunsplit((parts.scheme, f"{shown}{port}", path, parts.query, "")),
        connect=urlunsplit((parts.scheme, f"{reached}{port}", path, parts.query, "")),
        host=f"{shown}{port}",
        name=host,
    )


def number_of(host: str) -> IpAddress | None:
    """The IP address in a host, in any form that systems accept (`127.1`, `0x7f000001`, `2130706433`, `0177.0.0.1`);
    None for a name."""
    try:
        return _number(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


async def look_up(host: str, port: int) -> Sequence[str]:
    """Resolve a name to IP addresses, in the system's order; empty if it does not exist."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return ()
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


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
    """A fetched web page: its final URL, media type and charset (lower case, empty if unknown), and body."""

    url: str
    media: str
    charset: str
    body: bytes


class Pages:
    """Fetches pages that `addresses` allows. `seconds` and `most` bytes limit a page including its redirects."""

    def __init__(self, http: Http, addresses: Addresses, *, seconds: float, most: int) -> None:
        self._http = http
        self._addresses = addresses
        self._seconds = seconds
        self._most = most

    async def fetch(self, url: str, seconds: float | None = None) -> Page:
        """Fetch a page; `seconds` may shorten the limit. Raises `ToolError`."""
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
        """The page, or the redirect target."""
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
            too_much = ToolError(
                f"{target.url} has more than {self._most >> 20} MB (`web.max_mb`).",
                hint="Download it with the terminal where that is allowed.",
            )
            body = await within(self._most, response, too_much)
            return Page(url=target.url, media=media, charset=charset, body=body)


async def within(most: int, response: httpx2.Response, too_much: ToolError) -> bytes:
    """The response body. Raises `too_much` if it exceeds `most` bytes."""
    parts: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > most:
            raise too_much
        parts.append(chunk)
    return b"".join(parts)


def _content_type(response: httpx2.Response) -> tuple[str, str]:
    media, _, rest = str(response.headers.get("content-type", "text/html")).partition(";")
    charset = next(
        (each.partition("=")[2] for each in rest.split(";") if each.strip().lower().startswith("charset=")), ""
    )
    return media.strip().lower() or "text/html", charset.strip(" \"'").lower()
