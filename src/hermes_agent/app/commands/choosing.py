"""Slash commands that show and choose how the agent works: /reasoning, /permissions and /config; and /init."""

from __future__ import annotations

import asyncio
from functools import partial

from hermes_agent.app.commands.command import Desk, Done, command
from hermes_agent.app.operations.access import say_verb
from hermes_agent.app.operations.approvals import ALLOWED, list_approvals
from hermes_agent.app.settings import Settings
from hermes_agent.app.snapshot import EFFORT
from hermes_agent.core.errors import HermesError
from hermes_agent.host.config import load
from hermes_agent.host.late import late
from hermes_agent.host.locks import change_under
from hermes_agent.providers.vendor import LEVELS

SET = "hermes_agent.host.config_edit:set_value"
SHOWN = "hermes_agent.host.config_edit:shown"
WRITTEN = "hermes_agent.host.config_edit:known"
INIT = (
    "Look around in this folder and write AGENTS.md for whoever works here next: what the project is, how it is built, "
    "tested and run (commands that you tried), where what lies, and its conventions. One page, only what you found. "
    "If there is an AGENTS.md, improve it and keep what is right."
)


@command(
    "reasoning",
    "Show or choose how much the model reasons in this session.",
    arguments=f"[{'|'.join(LEVELS)}|off]",
    while_running=True,
)
async def reasoning(desk: Desk, rest: str) -> Done:
    """Show how much the model reasons in this session, or choose it; `off` returns to the setting."""
    place, usual = f"session:{desk.record.id}", desk.runtime.settings.model.reasoning_effort
    word = rest.lower()
    if not word:
        chosen = (await desk.hermes.store.facts.of(place)).get(EFFORT, "")
        where = "in this session" if chosen else "`model.reasoning_effort`"
        return Done(text=f"Reasoning: {chosen or usual} ({where}). Choose one of {', '.join(LEVELS)}.")
    if word not in (*LEVELS, "off"):
        raise HermesError(f"There is no level `{word}`. Choose one of {', '.join(LEVELS)}, or off for the setting.")
    await desk.hermes.store.facts.set(place, EFFORT, "" if word == "off" else word)
    return Done(text=f"From its next run on this session reasons at {usual if word == 'off' else word}.")


@command(
    "permissions",
    "Show what may run without a question, and revoke what was allowed for good.",
    arguments="[revoke ID]",
    while_running=True,
)
async def permissions(desk: Desk, rest: str) -> Done:
    """Show what may run without a question: mode, wall, `/yolo`, and what was allowed for good; or revoke one."""
    if rest:
        return Done(text=await say_verb(ALLOWED, desk.access, rest.split()))
    allowed = await list_approvals(desk.access)
    settings, runtime = desk.runtime.settings, desk.runtime
    lines = [
        f"Questions  {settings.approvals.mode} (`approvals.mode`)"
        + (", off for this run or the next (`/yolo`)" if runtime.unasked.holds(desk.record.id) else ""),
        f"Wall       {settings.terminal.jail} (`terminal.jail`), network {_network(settings)}",
        f"Denied     {', '.join(settings.approvals.deny) or 'nothing more'} (`approvals.deny`)",
        "For good   " + (f"{len(allowed)}: `/permissions revoke ID` takes one back" if allowed else "nothing"),
        *(f"  {each}" for each in allowed),
    ]
    return Done(text="\n".join(lines))


def _network(settings: Settings) -> str:
    network = settings.terminal.network
    if isinstance(network, bool):
        return "on" if network else "off"
    return network if isinstance(network, str) else ", ".join(network)


@command("config", "Show the settings that are set, or change one.", arguments="[KEY [VALUE]]", while_running=True)
async def config(desk: Desk, rest: str) -> Done:
    """Show the settings that are set, or one of them, or change one. For the owner."""
    desk.access.check_owner("Only the owner sees and changes the settings.")
    if desk.access.where is not None and not desk.access.where.is_private:
        raise HermesError("Others read along here: ask for the settings in a private chat.")
    key, _, value = rest.partition(" ")
    home, runtime = desk.runtime.home, desk.runtime
    if value:
        change = partial(late(SET), home, Settings, key, value.strip())
        await change_under(home.locks / "config.lock", partial(change, locks=False))
        await runtime.snapshots.renew(await asyncio.to_thread(load, home, Settings), runtime.secrets)
    if key:
        late(WRITTEN)(Settings, key)
    shown: list[tuple[str, str, str]] = late(SHOWN)(runtime.loaded, Settings, key, runtime.secrets.redact)
    lines = [f"{name} = {text}  ({source})" for name, text, source in shown]
    return Done(text="\n".join(lines) or "Nothing is set: `/config KEY VALUE` sets one, docs/configuration.md has all.")


@command("init", "Have the agent write an AGENTS.md for this folder.", arguments="[words]")
async def init(desk: Desk, rest: str) -> Done:
    """Have the agent write an AGENTS.md for the working folder."""
    return Done(submit=desk.message(f"{INIT} {rest}".strip()))
