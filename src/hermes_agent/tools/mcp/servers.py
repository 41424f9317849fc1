"""MCP servers of a process: what is known of each, and connections that open when a call needs them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.host.tasks import spawn
from hermes_agent.store.mcp.catalogue import McpCatalogue, McpLink, McpTool
from hermes_agent.tools.mcp.listing import Fits, judged
from hermes_agent.tools.mcp.settings import Server

if TYPE_CHECKING:
    from hermes_agent.tools.mcp.connection import Connection

    Connect: TypeAlias = Callable[[Server, str, Callable[[str], None]], Awaitable[Connection]]

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 60.0
NEW_SECONDS = 3.0
"""Seconds that a search for tools waits for servers which nobody has asked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the rows say of a server."""

    link: McpLink
    tools: tuple[McpTool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """A server that could not be reached: since when, why, how often it was tried, and when it is tried again."""

    since: float
    why: str
    tries: int
    next_try: float

    def words(self, server: str, clock: Clock) -> str:
        """What a call of the server says."""
        pause, since = max(0.0, self.next_try - clock.monotonic()), clock.now() - self.since
        return (
            f"The MCP server {server} has been away for {since:.0f} s ({self.why}). It is tried again in "
            f"{pause:.0f} s; `hermes mcp test {server}` tries it now."
        )


def away_again(before: Away | None, why: str, clock: Clock) -> Away:
    """The state after one more failure: each pause is twice the one before."""
    tries = before.tries + 1 if before else 1
    pause = min(2.0 ** (tries - 1), LONGEST_PAUSE)
    since = before.since if before else clock.now()
    return Away(since=since, why=why, tries=tries, next_try=clock.monotonic() + pause)


@dataclass(slots=True)
class Place:
    """The connection to one server for one workspace, if there is one, and the resources that are watched over it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: Connection | None = None
    away: Away | None = None
    calls: int = 0
    idle: asyncio.TimerHandle | None = None
    watched: set[str] = field(default_factory=set)

    def end_idle(self) -> None:
        """Have the connection, and what is watched over it, end once nobody used it for a while."""
        if (connection := self.connection) is None:
            return

        def end() -> None:
            if not self.calls:
                self.watched.clear()
                connection.end("nobody used it")  # At once: a call that comes now opens another one.
                spawn(connection.close(), name="end of an idle MCP server")

        if self.idle is not None:
            self.idle.cancel()
        self.idle = asyncio.get_running_loop().call_later(connection.setup.server.settings.idle, end)


class McpServers:
    """Reaches servers, and keeps the rows of what they offer. `connect` opens a connection to a server for a workspace;
    it is told what to call when the server's lists, or a resource, changed. `updates` counts what servers said of each
    resource that is watched."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        catalogue: Callable[[], McpCatalogue],
        connect: Connect,
        clock: Clock,
        fits: Fits,
    ) -> None:
        self.servers = {server.name: server for server in servers}
        self.known: dict[str, Known] = {}
        self.listeners: list[Callable[[], None]] = []
        self.updates = Counter[tuple[str, str]]()
        self._catalogue, self._connect, self._clock, self._fits = catalogue, connect, clock, fits
        self._places: defaultdict[tuple[str, str, str], Place] = defaultdict(Place)
        self._listing: dict[str, asyncio.Task[None]] = {}
        self._trying: set[asyncio.Task[None]] = set()
        self._again: set[str] = set()

    async def load(self) -> None:
        """Read the rows that changed."""
        links, changed = await self._catalogue().links(), False
        for name, server in self.servers.items():
            link, known = links.get(server.row), self.known.get(name)
            if link is None or link.config != server.config or (known and known.link == link):
                continue
            is_other = known is None or known.link.changed != link.changed or known.link.seen != link.seen
            tools = await self._catalogue().tools(server.row) if is_other else known.tools if known else ()
            self.known[name] = Known(link=link, tools=tools)
            changed = changed or is_other
        if changed:
            self._notify()

    async def ask_new(self, workspace: str = "") -> None:
        """Ask the servers that never answered what they offer; for those that nobody tried wait a few seconds."""
        new = [each for each in self.servers.values() if self._is_new(each, workspace)]
        untried = {each.name for each in new} - self.known.keys()
        tasks = {each.name: spawn(self._try(each, workspace), name=f"MCP server {each.name}") for each in new}
        for task in tasks.values():
            self._trying.add(task)
            task.add_done_callback(self._trying.discard)
        if untried:
            await asyncio.wait([tasks[name] for name in untried], timeout=NEW_SECONDS)

    def _is_new(self, server: Server, workspace: str) -> bool:
        known, away = self.known.get(server.name), self.place(server, workspace).away
        rests = away is not None and away.next_try > self._clock.monotonic()
        return not rests and (known is None or not known.link.seen)

    async def _try(self, server: Server, workspace: str) -> None:
        with suppress(HermesError):
            await self.refresh(server, workspace)

    async def refresh(self, server: Server, workspace: str, session: str = "") -> McpLink:
        """Ask a server what it offers, now. Raises `ToolError`."""
        connection = await self.connected(server, workspace, session, lists=False)
        try:
            await self._list(server, connection)
        except TimeoutError as error:
            raise ToolError(f"The MCP server {server.name} did not say in time what it offers.") from error
        return self.known[server.name].link

    async def retry(self, server: Server, workspace: str) -> McpLink:
        """The same at once, also where it would be tried again later."""
        for (name, *_), place in self._places.items():
            if name == server.name:
                place.away = None
        return await self.refresh(server, workspace)

    async def connected(self, server: Server, workspace: str, session: str = "", *, lists: bool = True) -> Connection:
        """The open connection to a server; a new one asks what it offers (`lists`), in the background. Raises
        `ToolError` for one that cannot be reached now."""
        place = self.place(server, workspace, session)
        async with place.lock:
            if place.connection is not None and place.connection.is_open:
                return place.connection
            if place.away is not None and self._clock.monotonic() < place.away.next_try:
                raise ToolError(place.away.words(server.name, self._clock))
            try:
                place.connection = await self._open(server, workspace, place)
            except HermesError as error:
                place.away = away_again(place.away, str(error), self._clock)
                await self._note(server, str(error))
                raise ToolError(place.away.words(server.name, self._clock)) from error
            place.away = None
            place.end_idle()
        if lists:
            self._relist(server, place.connection)
        for uri in place.watched:  # Nobody knows whether it changed meanwhile.
            self.updates[server.name, uri] += 1
            spawn(self._watched(place.connection, uri), name=f"watching at {server.name}")
        return place.connection

    async def _watched(self, connection: Connection, uri: str) -> None:
        with suppress(HermesError):
            await connection.ask("watch", uri)

    async def _open(self, server: Server, workspace: str, place: Place) -> Connection:
        seconds = server.settings.connect_timeout
        connection: Connection | None = None
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connect(server, workspace, lambda uri: self._changed(server, place, uri))
                await connection.opened()
        except BaseException as error:
            if connection is not None:
                await connection.close()
            if isinstance(error, TimeoutError):
                raise HermesError(f"it did not answer within {seconds:g} s") from error
            raise
        return connection

    def place(self, server: Server, workspace: str, session: str = "") -> Place:
        """The place of a server's connection for a workspace and session."""
        own = server.settings
        where = workspace if own.command or own.roots else ""
        return self._places[server.name, where, session if own.per_session else ""]

    async def _note(self, server: Server, why: str) -> None:
        """Write down why a server cannot be used, for people."""
        known = self.known.get(server.name, Known(link=McpLink(server=server.row, config=server.config)))
        if known.link.why != why:
            link = replace(known.link, why=why)
            self.known[server.name] = replace(known, link=link)
            await self._catalogue().put(link)

    def _changed(self, server: Server, place: Place, uri: str) -> None:
        if uri in place.watched:
            self.updates[server.name, uri] += 1
        elif not uri and place.connection is not None and place.connection.is_open:
            self._relist(server, place.connection)

    def _relist(self, server: Server, connection: Connection) -> None:
        """Ask for the tools in the background: once, and once more if they change meanwhile."""
        if server.name in self._listing:
            self._again.add(server.name)
            return
        self._listing[server.name] = spawn(self._relisted(server, connection), name=f"tools of {server.name}")

    async def _relisted(self, server: Server, connection: Connection) -> None:
        pause = FIRST_PAUSE
        try:
            while True:
                self._again.discard(server.name)
                with suppress(HermesError, TimeoutError):
                    await self._list(server, connection)
                if server.name not in self._again:
                    return
                await self._clock.sleep(pause)  # A server may say all the time that something changed.
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            del self._listing[server.name]

    async def _list(self, server: Server, connection: Connection) -> None:
        async with asyncio.timeout(server.settings.timeout):
            found = await connection.listing()
        tools = judged(server, found.tools, self._fits)
        before = self.known.get(server.name, Known(link=McpLink(server=server.row)))
        link = McpLink(
            server=server.row,
            config=server.config,
            version=found.version,
            title=found.title,
            seen=self._clock.now(),
            changed=before.link.changed + (before.tools != tools),
            prompts=found.prompts,
        )
        await self._catalogue().put(link, tools if before.tools != tools or not before.link.seen else None)
        self.known[server.name] = Known(link=link, tools=tools)
        self._notify()

    def _notify(self) -> None:
        for listener in self.listeners:
            listener()

    async def close(self) -> None:
        """End all connections, also those that are being opened."""
        for task in (under_way := [*self._listing.values(), *self._trying]):
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)
        for place in self._places.values():
            if place.idle is not None:
                place.idle.cancel()
        open_ = [place.connection for place in self._places.values() if place.connection is not None]
        async with asyncio.TaskGroup() as group:
            for connection in open_:
                group.create_task(connection.close())
