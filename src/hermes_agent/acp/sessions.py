"""The sessions of one editor: begun, opened from the log, listed, deleted and closed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeAlias, TypeVar

from acp import schema
from acp.exceptions import RequestError
from pydantic import BaseModel

from hermes_agent.acp.editor import Editor, dump
from hermes_agent.acp.session import EditorSession
from hermes_agent.acp.thread import PLATFORM
from hermes_agent.acp.transport import PARAMS
from hermes_agent.app.mcp.foreign import editor_servers
from hermes_agent.app.operations import sessions as operations
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.choices import choose_toolsets
from hermes_agent.app.operations.sessions import SessionRecord
from hermes_agent.app.system import System
from hermes_agent.app.tool_sources import EditorServer
from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import HermesError
from hermes_agent.core.mandate import Work
from hermes_agent.host.late import late

T = TypeVar("T", bound=BaseModel)
PAGE, LOOKED = 50, 200
"""Sessions of a page, and those that are looked at at once."""
CLOSED = "The session {session} is not open here: `session/load` or `session/resume` opens it."
OTHERS = "hermes_agent.app.places:other_folders"
Opening: TypeAlias = (
    schema.NewSessionRequest | schema.LoadSessionRequest | schema.ResumeSessionRequest | schema.ForkSessionRequest
)
Given: TypeAlias = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio


class Sessions:
    """Answers the requests about sessions. Raises `HermesError` and `RequestError` with a sentence."""

    def __init__(self, system: System, editor: Editor) -> None:
        self.system, self._editor = system, editor
        self._access: Access[System] = Access(system=system, who=system.owner)
        self._sessions: dict[str, EditorSession] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._ids, self._count = os.urandom(4).hex(), 0

    async def new(self, request: schema.NewSessionRequest) -> schema.NewSessionResponse:
        """Begin a session in a folder."""
        folder = await _checked(request)
        where = Conversation(platform=PLATFORM, chat_kind="folder", chat=folder)
        record = await self.system.hermes.open_session(where, self.system.owner, workspace=folder, new=True)
        await choose_toolsets(replace(self._access, session=record.id), self.system.settings.acp.toolsets)
        return await self._open(record, request, schema.NewSessionResponse)

    async def load(self, request: schema.LoadSessionRequest) -> schema.LoadSessionResponse:
        """Show a session from its log, and go on with it."""
        return await self._open(await self._known(request), request, schema.LoadSessionResponse, shows=True)

    async def resume(self, request: schema.ResumeSessionRequest) -> schema.ResumeSessionResponse:
        """Go on with a session without showing it."""
        return await self._open(await self._known(request), request, schema.ResumeSessionResponse)

    async def fork(self, request: schema.ForkSessionRequest) -> schema.ForkSessionResponse:
        """Go on in a copy of a session."""
        copy = await operations.branch_session(self._access, (await self._known(request)).id)
        return await self._open(copy, request, schema.ForkSessionResponse)

    async def _known(
        self, request: schema.LoadSessionRequest | schema.ResumeSessionRequest | schema.ForkSessionRequest
    ) -> SessionRecord:
        """The session's row. Raises `HermesError` for one that is not there, or works in another folder."""
        folder = await _checked(request)
        record = await operations.get_session(self._access, request.session_id)
        if not await asyncio.to_thread(_is_same, record.workspace, folder):
            raise HermesError(
                f"The session {record.id} works in {record.workspace}, not in {folder}: open that folder."
            )
        return record

    async def _open(self, record: SessionRecord, request: Opening, kind: type[T], *, shows: bool = False) -> T:
        """Open a session, or open it again; the answer to that, of that kind."""
        async with self._locks.setdefault(record.id, asyncio.Lock()):
            if (session := self._sessions.get(record.id)) is None:
                self._count += 1
                session = EditorSession(self.system, self._editor, record, f"{self._ids}:{self._count}")
            session.servers, session.folders = _servers(request), await self._others(request)
            self.system.buffers.add(record.id, session.folders)
            if self.system.settings.acp.editor_buffers and self._editor.has_buffers:
                self.system.buffers.put(record.id, partial(self._editor.read, record.id))
            await session.open(shows=shows)
            self._sessions[record.id] = session
            options, modes = await session.options.state()
        session.options.refresh()  # Its first step comes when the answer is queued: from here to there nothing waits.
        return kind(session_id=record.id, config_options=options, modes=modes)

    async def _others(self, request: Opening) -> tuple[str, ...]:
        """The real paths of the folders besides the workspace. Raises `HermesError` for one that may not be."""
        if not (named := request.additional_directories):
            return ()
        settings = self.system.settings.terminal
        return await asyncio.to_thread(lambda: late(OTHERS)(self.system.home, settings, named))

    async def list(self, request: schema.ListSessionsRequest) -> schema.ListSessionsResponse:
        """The person's sessions, in one folder or all, the one used last first."""
        if request.cwd is not None:
            await _folder(request.cwd, exists=False)
        found, before = list[SessionRecord](), request.cursor or ""
        while len(found) <= PAGE and (page := await operations.list_sessions(self._access, LOOKED, before)):
            before = page[-1].id
            own = [each for each in page if self.system.standings.is_owner(each.principal)]
            found += await asyncio.to_thread(_those_of, own, request.cwd)
        shown = [
            schema.SessionInfo(
                session_id=each.id,
                cwd=each.workspace or str(Path.home()),
                title=each.title or None,
                updated_at=datetime.fromtimestamp(each.updated, UTC).isoformat(),
            )
            for each in found[:PAGE]
        ]
        return schema.ListSessionsResponse(
            sessions=shown, next_cursor=found[PAGE - 1].id if len(found) > PAGE else None
        )

    async def delete(self, request: schema.DeleteSessionRequest) -> schema.DeleteSessionResponse:
        """Delete a session with its log."""
        await operations.delete_session(self._access, request.session_id)
        await self._drop(request.session_id)
        return schema.DeleteSessionResponse()

    async def close(self, request: schema.CloseSessionRequest) -> schema.CloseSessionResponse:
        """Stop a session's run, and follow it no more."""
        await self._drop(self._session(request.session_id).record.id)
        return schema.CloseSessionResponse()

    async def _drop(self, name: str) -> None:
        if (session := self._sessions.pop(name, None)) is not None:
            await session.close()

    async def prompt(self, request: schema.PromptRequest) -> schema.PromptResponse:
        """Have the agent answer a prompt."""
        return await self._session(request.session_id).prompt(request.prompt)

    async def set_mode(self, request: schema.SetSessionModeRequest) -> schema.SetSessionModeResponse:
        """Set the mode of a session."""
        await self._session(request.session_id).options.choose("mode", request.mode_id)
        return schema.SetSessionModeResponse()

    async def set_option(
        self, request: schema.SetSessionConfigOptionSelectRequest
    ) -> schema.SetSessionConfigOptionResponse:
        """Set an option of a session."""
        options = await self._session(request.session_id).options.choose(request.config_id, request.value)
        return schema.SetSessionConfigOptionResponse(config_options=list(options))

    async def cancel(self, request: schema.CancelNotification) -> None:
        """Cancel the prompts of a session."""
        if (session := self._sessions.get(request.session_id)) is not None:
            session.cancel()

    def _session(self, name: str) -> EditorSession:
        if name not in self._sessions:
            raise HermesError(CLOSED.format(session=name[:80]))
        return self._sessions[name]

    async def leave(self) -> None:
        """The editor is gone: stop the runs, or with `acp.on_leave: finish` wait for their ends."""
        if self.system.settings.acp.on_leave == "finish":
            await self.system.hermes.idle()
        async with asyncio.TaskGroup() as group:
            for name in tuple(self._sessions):
                group.create_task(self._drop(name))


def _those_of(page: Sequence[SessionRecord], folder: str | None) -> list[SessionRecord]:
    """The sessions in which a person said something, in that folder or anywhere. Blocks."""
    found = [each for each in page if each.surface not in tuple(Work)]
    found = [each for each in found if each.surface != PLATFORM or each.parent or each.updated > each.created]
    return [each for each in found if folder is None or _is_same(each.workspace, folder)]


async def _checked(request: Opening) -> str:
    """The folder that a request names. Raises `RequestError` and `ConfigError` for what is wrong with it."""
    for each in request.additional_directories or ():
        await _folder(each)
    _servers(request)
    return await _folder(request.cwd)


def _servers(request: Opening) -> tuple[EditorServer, ...]:
    return editor_servers([(each.name, _entry(each)) for each in request.mcp_servers or ()])


def _entry(server: Given) -> dict[str, Any]:
    plain = dump(server)
    named = {key: {each["name"]: each["value"] for each in plain.get(key, ())} for key in ("env", "headers")}
    return {**plain, **named}


async def _folder(path: str, *, exists: bool = True) -> str:
    """A folder as a request names it. Raises `RequestError`."""
    if not path.startswith("/") or "\0" in path:
        raise RequestError(PARAMS, f"`{path[:200]}` is no whole path of a folder, from `/`.")
    if exists and not await asyncio.to_thread(os.path.isdir, path):
        why = "is a file, no folder" if await asyncio.to_thread(os.path.lexists, path) else "does not exist"
        raise RequestError(PARAMS, f"The folder {path[:200]} {why}.")
    return str(PurePath(path))


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
