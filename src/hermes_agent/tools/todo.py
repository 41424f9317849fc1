"""Tool `todo`: a session's plan, kept as a small file and shown to the model beside each message."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from hermes_agent.core.effects import Effect
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import CallContext, tool
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import read_small, write_private

Status = Literal["pending", "in_progress", "completed", "cancelled"]
BOXES = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


class Todo(msgspec.Struct, frozen=True):
    """One item of a session's plan (tool `todo`)."""

    id: str
    content: str
    status: Status = "pending"


class Todos:
    """Stores the plans of all sessions, one file each in `folder`. As a prompt tail source it shows the plan beside
    each message, so that it survives compaction."""

    name = "Plan (todo)"
    origin = Origin.MODEL

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, session: str) -> tuple[Todo, ...]:
        """The plan; empty if there is none. Blocks."""
        content = read_small(self._file(session))
        return () if content is None else msgspec.json.decode(content, type=tuple[Todo, ...])

    def put(self, session: str, todos: tuple[Todo, ...]) -> None:
        """Replace the plan. Blocks."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._file(session), msgspec.json.encode(todos), durable=False)

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  a plan is shown whatever was said
        """One line per item; empty without a plan."""
        todos = self.get(session)  # there is mostly none, which takes less time than to wake a thread
        return shown(todos) if todos else ""

    def _file(self, session: str) -> Path:
        return self._folder / f"{hashlib.sha256(session.encode()).hexdigest()[:24]}.json"


class TodoTools:
    """The toolset `todo`: shows and changes the plan of a session."""

    def __init__(self, todos: Todos) -> None:
        self._todos = todos

    @tool(effect=Effect.KEYED, origin=Origin.MODEL)
    async def todo(self, context: CallContext, todos: list[Todo] | None = None, merge: bool = False) -> str:
        """Keep a plan of work with several steps; one step in_progress at a time. Without todos: show it.

        Args:
            merge: change only the items given, by id
        """
        if todos is None:
            return shown(await asyncio.to_thread(self._todos.get, context.session))
        before = await asyncio.to_thread(self._todos.get, context.session) if merge else ()
        after = {todo.id: todo for todo in (*before, *todos)}
        await asyncio.to_thread(self._todos.put, context.session, tuple(after.values()))
        return shown(tuple(after.values()))


def shown(todos: tuple[Todo, ...]) -> str:
    """One line per item."""
    return "\n".join(f"{BOXES[todo.status]} {todo.id}: {todo.content}" for todo in todos) or "The plan is empty."


def todo_tools(needs: Needs) -> TodoTools:
    """Factory of the toolset `todo`."""
    return TodoTools(needs.get(Todos))
