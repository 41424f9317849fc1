"""The built-in toolsets themselves, loaded with the first call of a tool."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes_agent.app.chats.file_delivery import FileDelivery
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.tool import Tool
from hermes_agent.host.http import Http
from hermes_agent.host.paths import Home, own_source
from hermes_agent.memory.conversation_tools import ConversationTools
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.tools import MemoryTools
from hermes_agent.sandbox.place import Place
from hermes_agent.store.database import Store
from hermes_agent.tools.clarify import ClarifyTools
from hermes_agent.tools.code.tools import CodeTools
from hermes_agent.tools.excerpt import Caps
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.readlog import ReadLog
from hermes_agent.tools.files.tools import FileTools
from hermes_agent.tools.files.writing import Writer
from hermes_agent.tools.output import Hiding
from hermes_agent.tools.schema import collect
from hermes_agent.tools.sending import SendTools
from hermes_agent.tools.shell.tools import ShellTools
from hermes_agent.tools.todo import Todos, TodoTools
from hermes_agent.tools.web.tools import WebTools


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What the toolsets are made of."""

    home: Home
    settings: Settings
    place: Place
    todos: Todos
    skills: Skills
    http: Http
    secret: Callable[[str], str]
    redact: Callable[[str], str]
    mask: Callable[[str], str]
    notes: Callable[[], Notes]
    store: Callable[[], Store]
    is_owner: Callable[[str], bool]


class ToolRegistry:
    """One of each; `shell` also knows the commands of a session."""

    def __init__(self, needs: Needs) -> None:
        settings, place = needs.settings, needs.place
        caps = Caps(max_bytes=settings.tool_output.max_bytes, max_lines=settings.tool_output.max_lines)
        hiding = Hiding(redact=needs.redact, mask=needs.mask)
        self.shell = ShellTools(place=place, settings=settings.terminal, caps=caps, hiding=hiding)
        source = None if settings.approvals.own_source else own_source()
        guard = Guard(home=needs.home.root, person=Path.home(), source=source)
        files = FileTools(
            guard=guard,
            log=ReadLog(needs.home.cache / "read"),
            writer=Writer(),
            ripgrep=shutil.which("rg") or "",
        )
        self._sets: Mapping[str, object] = {
            "files": files,
            "shell": self.shell,
            "code": CodeTools(place=place, settings=settings.code, caps=caps, hiding=hiding),
            "web": WebTools(http=needs.http, settings=settings.web, key_of=needs.secret),
            "todo": TodoTools(needs.todos),
            "skills": needs.skills.tools,
            "memory": MemoryTools(open_notes=needs.notes, is_owner=needs.is_owner),
            "recall": ConversationTools(needs.store),
            "clarify": ClarifyTools(),
            "sending": SendTools(guard=guard, hand_over=FileDelivery(store=needs.store)),
        }

    def tools_of(self, toolset: str) -> tuple[Tool, ...]:
        """The tools of one set. Raises `Unusable` where no schema can be made of one."""
        made, aside = collect([self._sets[toolset]])
        assert not aside, aside
        return made
