"""Settings of MCP servers (section `mcp_servers.NAME`), and what a server is by them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.http import LOOPBACK_HOSTS
from hermes_agent.host.schema import section, setting

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
EDITOR = "the editor"
"""The source of a server that an editor gives for one session."""
_BEGIN = r"\$\{(?:secret:|env:|input:)?([A-Za-z_][\w-]*)"
HANDLE = re.compile(_BEGIN + r"(?::-([^}]*))?\}")
"""A secret in a server's settings: `${secret:NAME}`, or `${NAME:-usual}` and `${input:name}` as other
programs write it."""
_NAMED = re.compile(_BEGIN + r"(?=:-|\})")
WORKSPACE = "${workspaceFolder}"
"""No secret: where VS Code starts a server."""

_STRING = rb'("(?:[^"\\]|\\.)*+"?)'
_ASIDE = re.compile(_STRING + rb"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + rb"|,(?=\s*+[\]}])", re.DOTALL)

HIDDEN = "[hidden]"
_TELLING = re.compile(
    r"(^|[_-]|api|access|auth|client)(keys?|tokens?|secrets?|pass(word|wd|phrase)?|credentials?|cookie"
    r"|auth(orization)?|sig(nature)?)$",
    re.IGNORECASE,
)
"""Names whose values are secrets."""
_PAIR = re.compile(r"([\w-]+)[=:](?!//)\s*(?:(?:bearer|basic|token) )?([^\s&#?]+)", re.IGNORECASE)
_OPTION = re.compile(r"--?[\w-]+")
_USER, _QUERY = re.compile(r"//([^/@\s]+)@"), re.compile(r"([?&][\w.-]+=)[^\s&#]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolFilter:
    """Which tools of a server are offered (section `mcp_servers.NAME.tools`)."""

    include: tuple[str, ...] = setting((), "Globs of the tools that are offered; empty: all.")
    exclude: tuple[str, ...] = setting((), "Globs of tools that are not.")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSettings:
    """Settings of one MCP server: a program to start (`command`) or an address (`url`)."""

    command: str = setting("", "The program of a server that is started here.")
    args: tuple[str, ...] = setting((), "Its arguments; `${secret:NAME}` stands for a secret, here and in `url`.")
    env: Mapping[str, str] = section(dict, "Its variables; `${secret:NAME}` stands for a secret.")
    cwd: str = setting("", "Folder in which it starts; empty: the session's workspace.")
    url: str = setting("", "Address of a server elsewhere.")
    transport: Literal["http", "sse"] = setting(
        "http", "How to talk to the address: streamable HTTP, or the older SSE."
    )
    headers: Mapping[str, str] = section(dict, "Headers of each request; `${secret:NAME}` stands for a secret.")
    auth: Literal["none", "oauth"] = setting("none", "Whether one signs in to it (`hermes mcp login`).")
    client_id: str = setting("", "The client's id or the address of its document; empty: it is registered.")
    client_secret: str = setting("", "Name of the secret with the client's secret.")
    scope: str = setting("", "Scopes of the sign-in; empty: what the server names.")
    enabled: bool = setting(True, "Whether its tools are offered.")
    timeout: float = setting(120.0, "Seconds that a call may take, without the time a person needs.", least=1)
    connect_timeout: float = setting(10.0, "Seconds that connecting may take.", least=0.1)
    idle: float = setting(1800.0, "Seconds without a call after which its connection, and its program, end.", least=0.1)
    tools: McpToolFilter = section(McpToolFilter, "Which of its tools are offered.")
    trust: Literal["none", "hints"] = setting(
        "none", "hints: what it says of its tools (that one only reads) counts. Otherwise every call counts as writing."
    )
    effects: Mapping[str, str] = section(dict, "What its tools do, by name: reads, keyed or writes.")
    parallel: bool = setting(False, "Whether its calls may run side by side with others that write.")
    per_session: bool = setting(False, "Whether each session has a connection, and a program, of its own.")
    jail: bool = setting(True, "Whether a program started here runs behind the wall of commands.")
    roots: bool = setting(True, "Whether it is told the session's workspace.")
    elicitation: bool = setting(True, "Whether it may ask the person.")
    sampling: Literal["off", "ask", "on"] = setting(
        "off", "Whether it may ask your model during a call: never, after you allowed it, or at once."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server by its settings. `source` is the file that names it, empty for config.yaml."""

    name: str
    settings: McpServerSettings
    source: str = ""

    @property
    def config(self) -> str:
        """The hash of what decides which server it is."""
        own = self.settings
        said = (own.command, own.args, dict(own.env), own.cwd, own.url, own.transport, dict(own.headers), own.auth)
        return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:16]

    @property
    def row(self) -> str:
        """Its name in the catalogue; that of an editor has the hash, as each editor names servers as it likes."""
        return f"{self.name}@{self.config}" if self.source == EDITOR else self.name

    @property
    def where(self) -> str:
        """Its command line or address, for people: without `literals`, and without the values of a query."""
        own = self.settings
        said = own.url or " ".join((own.command, *own.args))
        for literal in self.literals:
            said = said.replace(literal, HIDDEN)
        return _QUERY.sub(rf"\1{HIDDEN}", said)

    @property
    def literals(self) -> tuple[str, ...]:
        """What its settings hold in plain and is a secret by its place or name."""
        own = self.settings
        options = (pair for pair in zip(own.args, own.args[1:], strict=False) if _OPTION.fullmatch(pair[0]))
        pairs = chain(options, own.env.items(), own.headers.items())
        words = [HANDLE.sub("\0", each) for each in (*own.args, own.url, *("=".join(pair) for pair in pairs))]
        users = [part for word in words for user in _USER.findall(word) for part in (user, user.partition(":")[2])]
        found = [value for name, value in chain(*map(_PAIR.findall, words)) if _TELLING.search(name)]
        plain = {each for each in (*found, *users) if each and "\0" not in each}
        return tuple(sorted(plain, key=len, reverse=True))


def servers_of(settings: Mapping[str, McpServerSettings], source: str = "") -> tuple[Server, ...]:
    """The servers of these settings. Raises `ConfigError` for one that cannot be meant."""
    found = tuple(Server(name=name, settings=each, source=source) for name, each in settings.items())
    for server in found:
        check(server)
    return found


def check(server: Server) -> None:
    """Raise `ConfigError` for a server that cannot be meant."""
    own, key = server.settings, f"{server.source or 'mcp_servers'}: {server.name}"
    if not NAME.fullmatch(server.name):
        raise ConfigError(f"{key[:80]}: a server's name has letters, digits, `_` and `-`, at most 40.")
    if bool(own.command) == bool(own.url):
        what = "both `command` and `url`: keep one" if own.command else "neither `command` nor `url`: give one"
        raise ConfigError(f"{key} has {what}.")
    if wrong := [name for name, effect in own.effects.items() if effect not in ("reads", "keyed", "writes")]:
        raise ConfigError(f"{key}: the effect of `{wrong[0]}` is reads, keyed or writes.")
    parts = urlsplit(HANDLE.sub(lambda found: found[2] or ("x" if found.start() else "https://x"), own.url))
    if own.url and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ConfigError(f"{key}: `url` is an address such as https://example.com/mcp.")
    if own.auth == "oauth" and parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
        raise ConfigError(f"{key}: signing in needs https, since tokens would go over the network in plain.")


def secret_of(found: re.Match[str]) -> str:
    """The name of the secret that a `HANDLE` means."""
    return found[1].replace("-", "_")


def from_json(content: bytes) -> Any:  # noqa: ANN401 - what a file holds
    """JSON, also with the comments and last commas that VS Code allows. Raises `msgspec.DecodeError`."""
    without = _ASIDE.sub(lambda found: found[1] or b"", content)
    try:
        return msgspec.json.decode(_LAST_COMMA.sub(lambda found: found[1] or b"", without))
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(str(error)) from error


def secrets_in(text: str) -> list[str]:
    """The secrets that the servers of a file would get, whatever way its JSON writes their names: also those in the
    usual value of another."""
    with suppress(msgspec.DecodeError):
        text = msgspec.json.encode(from_json(text.encode())).decode()
    return sorted({secret_of(found) for found in _NAMED.finditer(text.replace(WORKSPACE, "."))})


def resolved(server: Server, secret: Callable[[str], str]) -> McpServerSettings:
    """The settings of a server with the secrets in place. Raises `ConfigError` for one that is missing, and for a
    server that cannot be meant then."""

    def put(found: re.Match[str]) -> str:
        name = secret_of(found)
        value = secret(name) or found[2] or ""
        if not value:
            raise ConfigError(f"There is no secret {name}: `hermes secrets set {name}`.")
        return value

    own, filled = server.settings, partial(HANDLE.sub, put)
    found = replace(
        own,
        command=filled(own.command),
        args=tuple(map(filled, own.args)),
        url=filled(own.url),
        env={name: filled(value) for name, value in own.env.items()},
        headers={name: filled(value) for name, value in own.headers.items()},
    )
    check(replace(server, settings=found))
    return found
