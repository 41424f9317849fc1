"""The sessions of one editor: begun, opened from the log, listed, deleted and closed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, TypeAlias, TypeVar

from acp import schema
from acp.exceptions import RequestError
from pydantic import BaseModel

from hermes_agent.acp.editor import READ, Editor, Unanswered
from hermes_agent.acp.following import PLATFORM
from hermes_agent.acp.session import EditorSession
from hermes_agent.acp.transport import PARAMS, request_id
from hermes_agent.app.mcp.foreign import editor_servers
from hermes_agent.app.operations import sessions as operations
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.sessions import SessionRecord
from hermes_agent.app.system import System
from hermes_agent.app.tool_sources import EditorServer
from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.core.mandate import Work

T = TypeVar("T", bound=BaseModel)
PAGE, LOOKED = 50, 200
"""Sessions of a page, and those that are looked at at once."""
BUFFER_SECONDS = 2.0
CLOSED = "The session {session} is not open here: `session/load` or `session/resume` opens it."
Opened: TypeAlias = (
    schema.NewSessionRequest | schema.LoadSessionRequest | schema.ResumeSessionRequest | schema.ForkSessionRequest
)
Given: TypeAlias = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio


class Sessions:
    """Answers the requests about sessions. Raises `HermesError` and `RequestError` with a sentence."""

    def __init__(self, system: System, editor: Editor) -> None:
        self.system = system
        self._editor = editor
        self._access: Access[System] = Access(system=system, who=system.owner)
        self._open_now: dict[str, EditorSession] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._ids, self._count = os.urandom(4).hex(), 0

    async def new(self, request: schema.NewSessionRequest) -> schema.NewSessionResponse:
        """Begin a session in a folder."""
        folder, servers = await _checked(request)
        where = Conversation(platform=PLATFORM, chat_kind="folder", chat=folder)
        hermes, owner = self.system.hermes, self.system.owner
        record = await hermes.open_session(where, owner, workspace=folder, new=True)
        session = await self._open(record, servers)
        return await _told(session, schema.NewSessionResponse, session_id=record.id)

    async def load(self, request: schema.LoadSessionRequest) -> schema.LoadSessionResponse:
        """Show a session from its log, and go on with it."""
        return await _told(await self._reopened(request, shows=True), schema.LoadSessionResponse)

    async def resume(self, request: schema.ResumeSessionRequest) -> schema.ResumeSessionResponse:
        """Go on with a session without showing it."""
        return await _told(await self._reopened(request, shows=False), schema.ResumeSessionResponse)

    async def fork(self, request: schema.ForkSessionRequest) -> schema.ForkSessionResponse:
        """Go on in a copy of a session."""
        folder, servers = await _checked(request)
        record = await self._record(request.session_id, folder)
        copy = await operations.branch_session(self._access, record.id)
        return await _told(await self._open(copy, servers), schema.ForkSessionResponse, session_id=copy.id)

    async def _reopened(
        self, request: schema.LoadSessionRequest | schema.ResumeSessionRequest, *, shows: bool
    ) -> EditorSession:
        folder, servers = await _checked(request)
        record = await self._record(request.session_id, folder)
        async with self._locks.setdefault(record.id, asyncio.Lock()):
            before = self._open_now.get(record.id)  # It stays there until it is replaced: its prompts can be cancelled.
            if before is not None:
                await before.close(stop=False)
            return await self._open(record, servers, shows=shows, before=before)

    async def _record(self, session: str, folder: str) -> SessionRecord:
        """The session's row. Raises `HermesError` for one that is not there, or works in another folder."""
        record = await operations.get_session(self._access, session)
        if not await asyncio.to_thread(_is_same, record.workspace, folder):
            raise HermesError(f"The session {session} works in {record.workspace}, not in {folder}: open that folder.")
        return record

    async def _open(
        self,
        record: SessionRecord,
        servers: Sequence[EditorServer],
        *,
        shows: bool = False,
        before: EditorSession | None = None,
    ) -> EditorSession:
        self._count += 1
        session = EditorSession(self.system, self._editor, record, f"{self._ids}:{self._count}", before)
        session.options.offer(servers)
        if self.system.settings.acp.editor_buffers and self._editor.has_buffers:
            self.system.buffers.put(record.id, self._reads(record.id))
        if shows:
            await session.replay()
        await session.begin()
        self._open_now[record.id] = session
        self._editor.transport.after[request_id.get()] = session.options.refresh
        return session

    def _reads(self, session: str) -> Callable[[str], Awaitable[str | None]]:
        async def read(path: str) -> str | None:
            request = schema.ReadTextFileRequest(session_id=session, path=path)
            with suppress(Unanswered, TimeoutError):
                async with asyncio.timeout(BUFFER_SECONDS):
                    return (await self._editor.ask(READ, request, schema.ReadTextFileResponse)).content
            return None

        return read

    async def list(self, request: schema.ListSessionsRequest) -> schema.ListSessionsResponse:
        """The person's sessions, in one folder or all, the one used last first."""
        if request.cwd is not None:
            await _folder(request.cwd, exists=False)
        found, before = list[SessionRecord](), request.cursor or ""
        while len(found) <= PAGE and (page := await operations.list_sessions(self._access, LOOKED, before)):
            before = page[-1].id
            found += await asyncio.to_thread(_those_of, page, request.cwd)
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
        self._session(request.session_id)
        await self._drop(request.session_id)
        return schema.CloseSessionResponse()

    async def _drop(self, name: str) -> None:
        if (session := self._open_now.pop(name, None)) is not None:
            self.system.buffers.drop(name)
            await session.close()

    async def prompt(self, request: schema.PromptRequest) -> schema.PromptResponse:
        """Have the agent answer a prompt."""
        return await self._session(request.session_id).prompt(request.prompt)

    async def set_mode(self, request: schema.SetSessionModeRequest) -> schema.SetSessionModeResponse:
        """Set the mode of a session."""
        session = self._session(request.session_id)
        await session.options.set_mode(request.mode_id)
        await session.options.show_changed()
        return schema.SetSessionModeResponse()

    async def set_option(
        self, request: schema.SetSessionConfigOptionSelectRequest
    ) -> schema.SetSessionConfigOptionResponse:
        """Set an option of a session."""
        session = self._session(request.session_id)
        await session.options.choose(request.config_id, request.value)
        await session.options.show_changed()
        return await _told(session, schema.SetSessionConfigOptionResponse)

    async def cancel(self, request: schema.CancelNotification) -> None:
        """Cancel the prompts of a session."""
        if (session := self._open_now.get(request.session_id)) is not None:
            session.cancel()

    def _session(self, name: str) -> EditorSession:
        if name not in self._open_now:
            raise HermesError(CLOSED.format(session=name[:80]))
        return self._open_now[name]

    async def leave(self) -> None:
        """The editor is gone: stop the runs, or with `acp.on_leave: finish` wait for their ends."""
        if self.system.settings.acp.on_leave == "finish":
            await self.system.hermes.idle()
        async with asyncio.TaskGroup() as group:
            for name in list(self._open_now):
                group.create_task(self._drop(name))

    def cancel_prompt(self, session: str, task: asyncio.Task[Any] | None) -> bool:
        """Cancel the prompts of a session if that task answers one; whether it does."""
        found = self._open_now.get(session)
        if found is None or not found.is_prompting(task):
            return False
        found.cancel()
        return True


async def _told(session: EditorSession, kind: type[T], **more: str) -> T:
    """A response of that kind, with the session's options and modes."""
    options, modes = await session.options.state()
    said = {"config_options": list(options), "modes": modes, **more}
    return kind(**{name: value for name, value in said.items() if name in kind.model_fields})


def _those_of(page: Sequence[SessionRecord], folder: str | None) -> list[SessionRecord]:
    """The sessions in which a person said something, in that folder or anywhere. Blocks."""
    found = [each for each in page if each.surface not in tuple(Work)]
    found = [each for each in found if each.surface != PLATFORM or each.parent or each.updated > each.created]
    return [each for each in found if folder is None or _is_same(each.workspace, folder)]


async def _checked(request: Opened) -> tuple[str, tuple[EditorServer, ...]]:
    """The folder and servers that a request names. Raises `RequestError`."""
    folder = await _folder(request.cwd)
    for each in request.additional_directories or ():
        await _folder(each)
    given = request.mcp_servers or []
    try:
        return folder, editor_servers([(each.name, _entry(each)) for each in given])
    except ConfigError as error:
        raise RequestError(PARAMS, str(error)) from error


def _entry(server: Given) -> dict[str, Any]:
    match server:
        case schema.McpServerStdio(command=command, args=args, env=env):
            return {"command": command, "args": args, "env": {each.name: each.value for each in env}}
        case schema.HttpMcpServer(url=url, headers=headers) | schema.SseMcpServer(url=url, headers=headers):
            return {"type": server.type, "url": url, "headers": {each.name: each.value for each in headers}}
        case _:
            raise ConfigError(f"{server.name}: servers behind the editor's own connection are not known here.")


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
