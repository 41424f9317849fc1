"""Subcommand `hermes prompt`: show the system prompt by section, with sizes, or compare two."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from functools import partial

import click

from hermes_agent.app.operations.sessions import TOOLS, Part, new_prompt, session_prompt
from hermes_agent.cli.operation import ask, ask_system
from hermes_agent.cli.output import say, show, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.section import Section, join_sections
from hermes_agent.core.tool import Quarantined

WHOLE = "system"
SAME = "Both prompts are the same, byte for byte."


@click.command(short_help="Show the prompt by section, in bytes and tokens.")
@click.option("--session", default="", metavar="SESSION", help="The frozen prompt of this session.")
@click.option("--against", default="", metavar="SESSION", help="Show only what differs from this session's prompt.")
@click.option("--diff", nargs=2, default=None, metavar="A B", help="Show how the prompt of session B differs from A's.")
@click.option(
    "--text",
    "wanted",
    default="",
    metavar="SECTION",
    help="Print the text of one section; `system`: of all but tools, as the model gets it.",
)
@pass_surface
def prompt(surface: Surface, session: str, against: str, diff: tuple[str, str] | None, wanted: str) -> None:
    """Show the prompt by section, in bytes and tokens (bytes / 4): of a session, or of a new one in this folder."""
    aside: tuple[Quarantined, ...] = ()
    if diff:
        say(differences(*(ask(surface, partial(session_prompt, name=name)) for name in diff)) or SAME)
        return
    if session:
        parts = ask(surface, partial(session_prompt, name=session))
    else:
        parts, aside = ask_system(surface, new_prompt, surface.invocation.model)
    if against:
        other = {part.name: part.hash for part in ask(surface, partial(session_prompt, name=against))}
        parts = [part for part in parts if other.get(part.name) != part.hash]
    if wanted:
        say(text_of(parts, wanted))
    else:
        show(parts, lambda _: SAME if against and not parts else measured(parts, aside))


def differences(one: Sequence[Part], two: Sequence[Part]) -> str:
    """Unified diff by section; empty if equal."""
    before, after = ({part.name: part.text.splitlines() for part in parts} for parts in (one, two))
    names = dict.fromkeys([*before, *after])
    found = [unified_diff(before.get(name, []), after.get(name, []), name, name, lineterm="") for name in names]
    return "\n".join(line for lines in found for line in lines)


def measured(parts: Sequence[Part], aside: Sequence[Quarantined]) -> str:
    """Table of sections with sizes, and the tools not offered."""
    rows = [(part.name, f"{part.bytes:,}", f"{part.tokens:,}", part.hash) for part in parts]
    rows += [("all", f"{sum(part.bytes for part in parts):,}", f"{sum(part.tokens for part in parts):,}", "")]
    left_out = [f"The tool `{tool.name}` is not offered: {tool.reason}." for tool in aside]
    return "\n".join([table(rows, ("SECTION", "BYTES", "TOKENS", "HASH"), right=(1, 2)), *left_out])


def text_of(parts: Sequence[Part], name: str) -> str:
    """The text of one section, or of the whole system prompt. Raises `UsageError` for an unknown name."""
    if name == WHOLE:
        return join_sections(tuple(Section(name=part.name, text=part.text) for part in parts if part.name != TOOLS))
    found = next((part.text for part in parts if part.name == name), None)
    if found is None:
        raise click.UsageError(f"There is no section `{name}`: {', '.join(part.name for part in parts)}.")
    return found
