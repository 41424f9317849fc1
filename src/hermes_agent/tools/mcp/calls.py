"""Calls of MCP servers: of a tool within a run, of a task that goes on after a crash, and of what else they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import OutcomeUnknown, ToolError
from hermes_agent.core.tool import Answer, CallContext
from hermes_agent.host.tasks import spawn
from hermes_agent.store.mcp.catalogue import McpTool
from hermes_agent.tools.mcp.listing import Lost, effect_of
from hermes_agent.tools.mcp.questions import Exchange
from hermes_agent.tools.mcp.results import answer_of
from hermes_agent.tools.mcp.servers import McpServers
from hermes_agent.tools.mcp.settings import Server

if TYPE_CHECKING:
    from hermes_agent.tools.mcp.connection import Connection

PROBE_SECONDS = 1.2
"""Seconds in which a server has to answer anything after a call was given up; else it ends."""
UNKNOWN = "Whether it was done is unknown: look before you try again."
AGAIN = frozenset((Effect.READS, Effect.KEYED))


class McpCalls:
    """Calls of the servers of a process, over connections that open when they are needed."""

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    async def call(self, server: Server, tool: McpTool, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        """Call a tool, or follow the task that this call began before a crash. Raises `ToolError`, also for what a
        server does wrong."""
        again = effect_of(server.settings, tool) in AGAIN
        if context.attach and not (again or context.begun_at.handle):
            raise OutcomeUnknown(f"Interrupted: no task of the MCP server {server.name} is known. {UNKNOWN}")
        named = {"progress_callback": _progress(context)}
        what = ("call_tool", tool.name, dict(arguments))
        return answer_of(await self.ask(server, what, context, named, again=again))

    async def ask(
        self,
        server: Server,
        what: tuple[Any, ...],
        context: CallContext,
        named: Mapping[str, Any] | None = None,
        *,
        again: bool = True,
    ) -> Any:  # noqa: ANN401 - a result of the SDK
        """Call a method of the SDK's client, again where the connection was lost and nothing happened or `again` says
        that it may. Raises `ToolError`."""
        for is_last in (False, True):
            if context.begun_at.handle:
                what, named, again = ("follow_task", what[1], context.begun_at.handle), {}, True
            try:
                return await self._asked(server, what, context, named or {})
            except (Lost, TimeoutError) as error:
                nothing = again or (isinstance(error, Lost) and error.unsent)
                if isinstance(error, Lost) and (nothing or context.begun_at.handle) and not is_last:
                    continue
                why = f"did not answer in time (`timeout` {server.settings.timeout:g} s)"
                why = f"went away during the call ({error})" if isinstance(error, Lost) else why
                kind, more = (
                    (ToolError, "") if nothing and not context.begun_at.handle else (OutcomeUnknown, f" {UNKNOWN}")
                )
                raise kind(f"The MCP server {server.name} {why}.{more}") from error
        raise AssertionError("the second try ends it")

    async def ask_alone(self, server: Server, workspace: str, *what: Any) -> Any:  # noqa: ANN401 - as above
        """Call a method of the SDK's client outside of any run. Raises `ToolError`."""
        try:
            async with asyncio.timeout(server.settings.timeout):
                async with self._servers.using(server, workspace) as connection:
                    return await connection.ask(*what)
        except (Lost, TimeoutError) as error:
            raise ToolError(
                f"The MCP server {server.name} did not answer: `/mcp test {server.name}` asks it."
            ) from error

    async def _asked(
        self, server: Server, what: tuple[Any, ...], context: CallContext, named: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401 - as above
        async with self._servers.using(server, context.workspace, context.session) as connection:
            exchange = Exchange(context, server.settings.timeout)
            serving = spawn(exchange.serve(), name="questions of an MCP server")
            try:
                async with exchange.limit:
                    return await connection.ask(*what, exchange=exchange, **named)
            except (TimeoutError, asyncio.CancelledError) as error:
                is_over = context.ends() or isinstance(error, TimeoutError)  # Else another process follows the task.
                task = context.begun_at.handle if is_over else ""
                looking = spawn(_given_up(connection, task), name="look after an MCP server")
                if task:
                    await asyncio.wait((looking,), timeout=PROBE_SECONDS)
                raise
            finally:
                serving.cancel()


async def _given_up(connection: Connection, task: str) -> None:
    """After a call was given up: end its task, and a server that does not answer any more, with its whole process
    group."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            with suppress(ToolError):
                await (connection.ask("end_task", task) if task else connection.ask("list_tools"))
    except (TimeoutError, Lost):
        await connection.close()


def _progress(context: CallContext) -> Callable[[float, float | None, str | None], Awaitable[None]]:
    async def show(done: float, total: float | None, message: str | None) -> None:
        share = f"{done:g} of {total:g}" if total else f"{done:g}"
        context.progress(f"{share}{f': {message[:200]}' if message else ''}")

    return show
