"""`hermes prompt`: what every request begins with, section by section, in bytes and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import unified_diff
from functools import partial

import click

from hermes_agent.cli.output import say, say_json, table
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import UnknownSession
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.model import ToolSchema
from hermes_agent.core.section import Section, estimate_tokens, join_sections, short_hash, tools_text
from hermes_agent.core.tool import Quarantined
from hermes_agent.host.late import late
from hermes_agent.host.paths import current_folder
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord

WHOLE, TOOLS = "system", "tools"
SAME = "Both prompts are the same, byte for byte."


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One section: its name, size and hash, and its text."""

    name: str
    bytes: int
    tokens: int
    hash: str
    text: str


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
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the texts.")
@pass_surface
def prompt(
    surface: Surface, session: str, against: str, diff: tuple[str, str] | None, wanted: str, as_json: bool
) -> None:
    """Show the prompt by section, in bytes and tokens (bytes / 4): of a session, or of a new one in this folder."""
    aside: tuple[Quarantined, ...] = ()
    if diff:
        one, two = (with_store(surface, partial(frozen, name=name)) for name in diff)
        say(differences(one, two) or SAME)
        return
    if session:
        parts = with_store(surface, lambda store: frozen(store, session))
    else:
        parts, aside = asyncio.run(fresh(surface))
    if against:
        other = {part.name: part.hash for part in with_store(surface, lambda store: frozen(store, against))}
        parts = [part for part in parts if other.get(part.name) != part.hash]
    if wanted:
        say(text_of(parts, wanted))
    elif as_json:
        say_json(parts)
    elif against and not parts:
        say(SAME)
    else:
        say(measured(parts, aside))


def differences(one: Sequence[Part], two: Sequence[Part]) -> str:
    """Line by line, section by section; empty where there are none."""
    before, after = ({part.name: part.text.splitlines() for part in parts} for parts in (one, two))
    names = dict.fromkeys([*before, *after])
    found = [unified_diff(before.get(name, []), after.get(name, []), name, name, lineterm="") for name in names]
    return "\n".join(line for lines in found for line in lines)


def measured(parts: Sequence[Part], aside: Sequence[Quarantined]) -> str:
    """The sections and their sizes as a table, and below it which tools are not offered."""
    rows = [(part.name, f"{part.bytes:,}", f"{part.tokens:,}", part.hash) for part in parts]
    rows.append(("all", f"{sum(part.bytes for part in parts):,}", f"{sum(part.tokens for part in parts):,}", ""))
    left_out = [f"The tool `{tool.name}` is not offered: {tool.reason}." for tool in aside]
    return "\n".join([table(rows, ("SECTION", "BYTES", "TOKENS", "HASH"), right=(1, 2)), *left_out])


async def frozen(store: Store, name: str) -> list[Part]:
    """The prompt that a session began with. Raises `UnknownSession` where there is none."""
    session = await store.sessions.find(name)
    prefix = await store.prefixes.get(session.prefix) if session.prefix else None
    if prefix is None:
        raise UnknownSession(f"Session {session.id} has no prompt yet: nothing was asked in it.")
    return parts_of(prefix.sections, prefix.prefix.tools)


async def fresh(surface: Surface) -> tuple[list[Part], tuple[Quarantined, ...]]:
    """The prompt that a new session in this folder would begin with, and the tools that its model is not offered."""
    chosen, folder = surface.invocation.model, str(current_folder())
    options = late("hermes_agent.app.process:Options")(model=chosen)
    async with late("hermes_agent.app.opening:open_system")(surface.home.ensure(), options) as runtime:
        record = SessionRecord(
            id="",
            principal=runtime.owner.key,
            conversation=Conversation(platform="cli", chat_kind="folder", chat=folder).key,
            surface="cli",
            model=chosen,
            workspace=folder,
            created=0.0,
            updated=0.0,
        )
        sections, tools = await runtime.snapshots.prompt(record)
        return parts_of(sections, tools), runtime.not_offered()


def parts_of(sections: Sequence[Section], tools: Sequence[ToolSchema]) -> list[Part]:
    """The sections in their order, the tools last."""
    texts = [(section.name, section.text) for section in sections]
    texts.append((TOOLS, tools_text(tuple(tools))))
    return [
        Part(name=name, bytes=len(text.encode()), tokens=estimate_tokens(text), hash=short_hash(text), text=text)
        for name, text in texts
    ]


def text_of(parts: Sequence[Part], name: str) -> str:
    """The text of one section, or of the whole system prompt. Raises `UsageError` for a name that is neither."""
    if name == WHOLE:
        return join_sections(tuple(Section(name=part.name, text=part.text) for part in parts if part.name != TOOLS))
    found = next((part.text for part in parts if part.name == name), None)
    if found is None:
        raise click.UsageError(f"There is no section `{name}`: {', '.join(part.name for part in parts)}.")
    return found
