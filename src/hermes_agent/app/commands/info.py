"""Slash commands that show information: /help, /model, /tools, /status, /cost and /usage."""

from __future__ import annotations

from hermes_agent.app.chats.people import may
from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import Command, Desk, Done, command, command_of
from hermes_agent.app.operations.costs import LimitLine, Total, cached_share, dollars, list_limits, session_totals

WIDEST_USE = 28
"""Columns of the words of commands in /help."""


@command("help", "Show the commands.", arguments="[command]", while_running=True)
async def show_help(desk: Desk, rest: str) -> Done:
    """List the commands that the sender may use, or show one."""
    rules = desk.runtime.settings.gateway.channels.get(desk.inbound.conversation.platform, ChannelSettings())
    theirs = [name for name in COMMANDS if may(rules, desk.inbound.principal.standing, name)]
    names = [rest.lstrip("/")] if rest.lstrip("/") in COMMANDS else theirs
    commands = [command_of(name) for name in names]
    uses = [f"/{command.name} {command.arguments}".rstrip() for command in commands]
    width = min(max(map(len, uses)), WIDEST_USE)
    pairs = zip(uses, (command.summary for command in commands), strict=True)
    return Done(text="\n".join(_help_line(use, summary, width) for use, summary in pairs))


def _help_line(use: str, summary: str, width: int) -> str:
    """Format a command and its summary; a long usage gets a line of its own."""
    return f"{use:<{width}}  {summary}" if len(use) <= width else f"{use}\n{'':<{width}}  {summary}"


@command("model", "Show or choose this session's model.", arguments="[vendor/model]")
async def model(desk: Desk, rest: str) -> Done:
    """Show the session's model, or switch it."""
    if not rest:
        return Done(text=f"Model: {desk.runtime.route(desk.record.model).name}")
    route = desk.runtime.route(rest)
    await desk.hermes.choose(desk.record.id, rest)
    return Done(text=f"This session now asks {route.name}.")


@command("tools", "List the tools.", while_running=True)
async def tools(desk: Desk, _: str) -> Done:
    """List the tools that this agent has."""
    toolbox = desk.runtime.toolbox
    schemas = [*toolbox.offered, *(tool.schema for tool in toolbox.deferred)]
    lines = [f"{schema.name:<14} {schema.description.splitlines()[0]}" for schema in schemas]
    lines += [f"{tool.name:<14} not offered: {tool.reason}" for tool in desk.runtime.not_offered(desk.record.model)]
    return Done(text="\n".join(lines))


@command("status", "Show the model, folder and state of this session.", while_running=True)
async def status(desk: Desk, _: str) -> Done:
    """Show the state of this session."""
    number = await desk.hermes.store.history.last_number(desk.record.id)
    lines = [
        f"Session  {desk.record.id}{f' ({desk.record.title})' if desk.record.title else ''}",
        f"Model    {desk.route.name if desk.route else 'none: `hermes setup` chooses one'}",
        f"Folder   {desk.record.workspace}",
        f"Events   {number}",
        f"Run      {'under way' if desk.busy else 'none'}",
    ]
    if desk.runtime.loaded.notice:
        lines.append(f"Config   {desk.runtime.loaded.notice}")
    return Done(text="\n".join(lines))


@command("cost", "Show the tokens and cost of this session, and what the limits leave.", while_running=True)
async def cost(desk: Desk, _: str) -> Done:
    """Show the session's usage by model, and each limit that applies to it."""
    used = list(map(_used, await session_totals(desk.access, desk.record.id)))
    limits = map(_sentence, await list_limits(desk.access, desk.record))
    return Done(text="\n".join([*(used or ["Nothing used yet."]), *limits]))


def _used(total: Total) -> str:
    return (
        f"{total.key}: {total.calls} model call{'s' * (total.calls > 1)}, {total.usage.input:,} tokens in "
        f"({cached_share(total.usage)} cached), {total.usage.output:,} out, cost in US dollars: {dollars(total)}."
    )


def _sentence(line: LimitLine) -> str:
    most, used, reserved, left = line.text
    if line.left is None:
        return f"{line.setting}: {most} {line.of}."
    return f"{line.setting}: {used} used of {most}, {reserved} reserved, {left} left ({line.of})."


USAGE = Command(name="usage", summary="The same as /cost.", act=cost.act, while_running=True)
