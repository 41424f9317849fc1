"""Operations on MCP servers: list them, show what one offers, and ask one again now."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes_agent.app.mcp.signin import Paste, Show, begin, end, sign_in, sign_out
from hermes_agent.app.mcp.source import McpTools
from hermes_agent.app.operations.access import Access, HomeSystem, Noun, OfflineSystem, place, verb
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import needs_without_store
from hermes_agent.core.chat import Standing
from hermes_agent.core.clock import moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.shown import plural
from hermes_agent.host.config import load
from hermes_agent.host.secrets import open_secrets
from hermes_agent.store.database import Store
from hermes_agent.store.mcp.catalogue import McpPrompt
from hermes_agent.tools.mcp.listing import effect_of, is_offered, tool_name
from hermes_agent.tools.mcp.results import Part, contents, joined, parts_of
from hermes_agent.tools.mcp.servers import Known
from hermes_agent.tools.mcp.settings import Server

if TYPE_CHECKING:
    from hermes_agent.app.system import System

NAMED = re.compile(r"(?:^|(?<=\s))@([A-Za-z0-9][\w-]*):(\S*[^\s.,;:!?)])")
"""A resource in a message."""
NOTHING = "There are no MCP servers. `hermes mcp add` adds one."


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """A server for people. `state`: off, new (nobody asked it yet), ready, away, or broken (a file that cannot
    be read); `why` says why."""

    name: str
    state: str
    where: str
    source: str = ""
    title: str = ""
    version: str = ""
    seen: float = 0.0
    tools: int = 0
    quarantined: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolView:
    """A tool of a server for people. `why` says why it is not offered, empty: it is."""

    name: str
    effect: str
    description: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDetails:
    """A server with its tools and its prompts, by the names that a slash calls."""

    server: ServerView
    tools: tuple[ToolView, ...] = ()
    prompts: tuple[str, ...] = ()


async def list_servers(access: Access[HomeSystem]) -> list[ServerView]:
    """All servers. For the owner."""
    async with _opened(access) as source:
        found = [_view(each, source.servers.known.get(each.name)) for each in source.all]
        return [*found, *(ServerView(name="-", state="broken", where="", why=each) for each in source.problems)]


async def show_server(access: Access[HomeSystem], name: str) -> ServerDetails:
    """What a server offered when it was asked last."""
    async with _opened(access) as source:
        server = _named(source, name)
        return _details(server, source.servers.known.get(name))


async def test_server(access: Access[HomeSystem], name: str) -> ServerDetails:
    """Ask a server now what it offers. Raises `HermesError` where it cannot be reached."""
    async with _opened(access) as source:
        server = _named(source, name)
        if not server.settings.enabled:
            raise HermesError(f"{name} is off: `hermes mcp enable {name}`.")
        await source.servers.retry(server, access.folder)
        return _details(server, source.servers.known.get(name))


async def sign_in_to(access: Access[HomeSystem], name: str, show: Show, paste: Paste | None = None) -> ServerDetails:
    """Sign in to a server as a person. Raises `HermesError`."""
    async with _opened(access) as source:
        server = _named(source, name)
        await sign_in(source, server, access.folder, show, paste)
        return _details(server, source.servers.known.get(name))


async def sign_out_of(access: Access[HomeSystem], name: str, *, client: bool = False) -> bool:
    """Forget the sign-in to a server; whether its issuer revoked the tokens."""
    async with _opened(access) as source:
        return await sign_out(source, _named(source, name), client=client)


async def begin_sign_in(access: Access[System], name: str) -> str:
    """Begin to sign in to a server from a chat; the address to open, empty where nothing is needed. Raises
    `HermesError`."""
    if access.where is not None and not access.where.is_private:
        raise HermesError("Sign in from a private chat: others could open the address here.")
    async with _opened(access) as source:
        return await begin(source, _named(source, name), access.folder)


async def end_sign_in(access: Access[System], name: str, address: str) -> ServerDetails:
    """End a sign-in with the address where the browser ended. Raises `HermesError`."""
    async with _opened(access) as source:
        server = _named(source, name)
        await end(source, server, address)
        return _details(server, source.servers.known.get(name))


async def reload_servers(access: Access[System]) -> list[ServerView]:
    """Read the settings again, for runs from now on, and list the servers. Raises `HermesError`."""
    access.check_owner("Only the owner sees the MCP servers.")
    system = access.system
    loaded = await asyncio.to_thread(load, system.home, Settings)
    if loaded.problems:
        raise HermesError(f"{loaded.problems[0]} The settings of before stay in force.")
    if not system.has_cassette:
        await system.snapshots.renew(loaded, await asyncio.to_thread(open_secrets, system.home))
    return await list_servers(access) if system.settings.mcp_servers else []


async def read_named(access: Access[System], text: str) -> tuple[Part, ...]:
    """The resources that a message names with `@server:address`, each once; words that name no server stay words.
    Raises `HermesError`."""
    source = _running(access.system)
    parts: list[Part] = []
    for name, uri in dict.fromkeys(NAMED.findall(text) if source else ()):
        if source is None or name not in source.servers.servers:
            continue
        server = source.servers.servers[name]
        found = await source.calls.ask_alone(server, access.folder, "read_resource", uri)
        head = Text(text=f"\n\n{name}:{uri}:\n", origin=Origin.TOOL)
        parts += joined((head, *map(contents, found.contents)), "")
    return tuple(parts)


async def fill_prompt(access: Access[System], line: str) -> tuple[Part, ...] | None:
    """What a prompt of a server says, for a line such as `/mcp__server__prompt name=value`; None where no server has
    it. Raises `HermesError`."""
    word, _, rest = line.strip().partition(" ")
    if access.who.standing is Standing.GUEST or not word.startswith("/mcp__"):
        return None
    source = _running(access.system)
    if source is None:
        return None
    if word[1:] not in source.prompts():
        await source.look(access.folder)  # Nobody may have asked that server yet.
    if word[1:] not in source.prompts():
        return None
    server, prompt = source.prompts()[word[1:]]
    result = await source.calls.ask_alone(server, access.folder, "get_prompt", prompt.name, _given(prompt, rest))
    return joined((part for each in result.messages for part in parts_of(each.content)), "(empty)")


def _given(prompt: McpPrompt, words: str) -> dict[str, str]:
    """The arguments of a prompt: `name=value`, else in their order, the last one with all that is left. Raises
    `HermesError` for one that is missing."""
    given: dict[str, str] = {}
    rest: list[str] = []
    for word in words.split():
        name, equals, value = word.partition("=")
        if equals and name in prompt.arguments:
            given[name] = value
        else:
            rest.append(word)
    free = [name for name in prompt.arguments if name not in given]
    for number, name in enumerate(free[: len(rest)]):
        given[name] = " ".join(rest[number:]) if name == free[-1] else rest[number]
    if missing := [name for name in prompt.required if name not in given]:
        raise HermesError(f"The prompt {prompt.name} needs {', '.join(missing)}: say NAME=VALUE.")
    return given


async def forget_server(access: Access[HomeSystem], name: str) -> None:
    """Forget what a server offered."""
    access.check_owner("Only the owner removes MCP servers.")
    await access.system.store.mcp.forget(name)


@asynccontextmanager
async def _opened(access: Access[HomeSystem]) -> AsyncIterator[McpTools]:
    """The servers of a running system, as its agent has them; else those of the home."""
    access.check_owner("Only the owner sees the MCP servers.")
    system = access.system
    if not isinstance(system, OfflineSystem):
        found = _running(system)
        if found is None:
            raise HermesError(NOTHING)
        await found.ready()
        yield found
        return
    own = McpTools(needs_without_store(system.home, system.settings, {Store: system.store}))
    try:
        await own.servers.load()
        yield own
    finally:
        await own.close()


def _running(system: System) -> McpTools | None:
    """The servers as the agent of a running system has them."""
    return next((each for each in system.snapshots.now.toolkit.sources if isinstance(each, McpTools)), None)


def _named(source: McpTools, name: str) -> Server:
    found = next((each for each in source.all if each.name == name), None)
    if found is None:
        known = ", ".join(each.name for each in source.all) or "none"
        raise HermesError(f"There is no MCP server `{name}`. There are: {known}.")
    return found


def _view(server: Server, known: Known | None) -> ServerView:
    link = known.link if known else None
    tools = known.tools if known else ()
    state = "new" if link is None else "away" if link.why else "ready"
    return ServerView(
        name=server.name,
        state=state if server.settings.enabled else "off",
        where=server.where,
        source=server.source,
        title=link.title if link else "",
        version=link.version if link else "",
        seen=link.seen if link else 0.0,
        tools=sum(not each.why for each in tools),
        quarantined=sum(bool(each.why) for each in tools),
        why=link.why if link else "",
    )


def _details(server: Server, known: Known | None) -> ServerDetails:
    tools = tuple(
        ToolView(
            name=tool_name(server.name, each.name),
            effect=effect_of(server.settings, each),
            description=" ".join(each.description.split())[:200],
            why=each.why or ("" if is_offered(server.settings, each.name) else "the settings leave it out"),
        )
        for each in (known.tools if known else ())
    )
    prompts = tuple(tool_name(server.name, each.name) for each in known.link.prompts) if known else ()
    return ServerDetails(server=_view(server, known), tools=tools, prompts=prompts)


def _line(view: ServerView) -> str:
    more = f", {view.quarantined} quarantined" if view.quarantined else ""
    told = view.why or (f"{plural(view.tools, 'tool')}{more}" if view.seen else "")
    return " · ".join(filter(None, (view.name, view.state, told, view.where, view.source)))


def said_of(found: ServerDetails) -> str:
    """A server and its tools as lines."""
    view = found.server
    head = [_line(view)]
    if view.seen:
        head.append(f"{view.title or 'no title'}, protocol {view.version}, asked {moment(view.seen)}")
    tools = [f"  {each.name} ({each.why or each.effect}) {each.description}".rstrip() for each in found.tools]
    prompts = [f"prompts: {', '.join(f'/{name}' for name in found.prompts)}"] if found.prompts else []
    return "\n".join((*head, *tools, *prompts))


MCP = Noun(
    name="mcp",
    offline=True,
    short_help="Connect the agent to MCP servers.",
    help="Connect the agent to MCP servers, whose tools it finds when it needs them.",
    verbs=(
        verb(
            "list",
            "List the servers and their state.",
            list_servers,
            text=lambda found: "\n".join(map(_line, found)),
            nothing=NOTHING,
        ),
        verb("show", "Show the tools and prompts of a server.", show_server, place("name"), text=said_of),
        verb("test", "Ask a server now what it offers.", test_server, place("name"), text=said_of),
    ),
)
