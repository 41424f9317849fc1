"""Slash commands /learn, /curator, /trust and /memory, which have subcommands; and /skills and /bundles, which list
skills and bundles."""

from __future__ import annotations

from functools import partial

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import Command, Desk, Done, command
from hermes_agent.app.operations.access import Noun, say_verb
from hermes_agent.app.operations.learning import CURATED, LEARNED
from hermes_agent.app.operations.memory import FACTS, NOTES
from hermes_agent.app.operations.skills import list_bundles, show_bundle
from hermes_agent.app.operations.trust import TRUST
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.skills.library import whole_line


async def _say(noun: Noun, desk: Desk, rest: str) -> Done:
    """Run the verb that the rest of the line names."""
    return Done(text=await say_verb(noun, desk.access, rest.split()))


LEARN = Command(
    name="learn",
    summary="List lessons and proposals with their evidence, and approve or undo them.",
    arguments=f"{LEARNED.arguments} [ID]",
    act=partial(_say, LEARNED),
    while_running=True,
)


TRUSTED = Command(
    name="trust",
    summary="Choose the folders whose files you trust.",
    arguments=f"{TRUST.arguments} [FOLDER]",
    act=partial(_say, TRUST),
    while_running=True,
)


CURATOR = Command(
    name="curator",
    summary="Archive, merge and repair the skills that the agent made.",
    arguments=f"{CURATED.arguments} [NAME]",
    act=partial(_say, CURATED),
    while_running=True,
)


@command(
    "memory",
    "Show the notes about you and their changes, or undo a change.",
    arguments="[log|undo [ID]|facts]",
    while_running=True,
)
async def memory(desk: Desk, rest: str) -> Done:
    """Run a verb on the sender's notes, or on facts (`/memory facts ...`)."""
    word, _, more = rest.partition(" ")
    return await (_say(FACTS, desk, more) if word == "facts" else _say(NOTES, desk, rest))


LINES = 40


@command("skills", "List the skills, or those that fit some words.", arguments="[words]", while_running=True)
async def skills(desk: Desk, rest: str) -> Done:
    """List the skills visible to this session, or search them."""
    if desk.inbound.principal.standing is Standing.GUEST:
        raise HermesError("Guests see no skills.")
    library = desk.runtime.skills.library
    occasion = desk.runtime.skills.occasion(desk.record.id, desk.record.conversation)
    if rest:
        headers = await library.candidates(rest, desk.record.workspace, occasion, 10)
    else:
        headers = await library.all(desk.record.workspace, occasion, limit=LINES)
    lines = [
        whole_line(header) + (" (a command has this name)" if header.name in COMMANDS else "") for header in headers
    ]
    lines += [f"{folder}: {problem}" for folder, problem in await library.broken(desk.record.workspace)]
    if not rest and len(headers) == LINES:
        lines.append("There are more: `/skills WORDS` finds one, `hermes skills list` shows all.")
    return Done(text="\n".join(lines) or "There are no skills.")


@command("bundles", "List bundles of skills, or the skills of one.", arguments="[name]", while_running=True)
async def bundles(desk: Desk, rest: str) -> Done:
    """List the bundles, or the skills of one."""
    found = [each for each in await list_bundles(desk.access) if rest in ("", each.name)]
    lines = [each.line + (" (a command has this name)" if each.name in COMMANDS else "") for each in found]
    if rest and not lines:
        await show_bundle(desk.access, rest)
    return Done(text="\n".join(lines) or "There are no bundles: `hermes bundles add NAME SKILL...` makes one.")
