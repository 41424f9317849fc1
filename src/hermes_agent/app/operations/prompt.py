"""Operation that shows the system prompt of a session, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_agent.app.operations.sessions import SessionRecord, find_session
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import UnknownSession
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.model import ToolSchema
from hermes_agent.core.section import Section, estimate_tokens, short_hash, tools_text
from hermes_agent.core.tool import Quarantined

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem
    from hermes_agent.app.system import System

TOOLS = "tools"
"""The name of the last section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One prompt section: name, size, hash and text."""

    name: str
    bytes: int
    tokens: int
    hash: str
    text: str


async def session_prompt(access: Access[HomeSystem], name: str) -> list[Part]:
    """The prompt that a session started with. Raises `UnknownSession` if it has none."""
    session = await find_session(access, name)
    prefix = await access.system.store.prefixes.get(session.prefix) if session.prefix else None
    if prefix is None:
        raise UnknownSession(f"Session {session.id} has no prompt yet: nothing was asked in it.")
    return parts_of(prefix.sections, prefix.prefix.tools)


async def new_prompt(access: Access[System]) -> tuple[list[Part], tuple[Quarantined, ...]]:
    """The prompt of a new session in this folder, and the tools not offered to its model."""
    system = access.system
    record = SessionRecord(
        id="",
        principal=access.who.key,
        conversation=Conversation(platform="cli", chat_kind="folder", chat=access.folder).key,
        surface="cli",
        model=system.model,
        workspace=access.folder,
        created=0.0,
        updated=0.0,
    )
    sections, tools = await system.snapshots.prompt(record)
    return parts_of(sections, tools), system.not_offered()


def parts_of(sections: Sequence[Section], tools: Sequence[ToolSchema]) -> list[Part]:
    """The sections in order, the tools last."""
    texts = [(section.name, section.text) for section in sections]
    texts.append((TOOLS, tools_text(tuple(tools))))
    return [
        Part(name=name, bytes=len(text.encode()), tokens=estimate_tokens(text), hash=short_hash(text), text=text)
        for name, text in texts
    ]
