"""The toolset `files` as the model sees it: read_file, write_file, patch and search_files."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments, ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import Home
from hermes_agent.tools.files import searching
from hermes_agent.tools.files.buffers import Buffers
from hermes_agent.tools.files.content import UTF8, coding_of, is_text
from hermes_agent.tools.files.guard import Guard, ReadLog
from hermes_agent.tools.files.patching import Edits, parse_patch
from hermes_agent.tools.files.reading import Page, missing, read_page, read_text
from hermes_agent.tools.files.writing import Change, Changer, Version, Writer
from hermes_agent.tools.schema import said

if TYPE_CHECKING:
    from hermes_agent.tools.files.searching import Found

# Searching runs a process of its own; its machinery is loaded with the first search.
READS, WRITES = (Capability.FS_READ,), (Capability.FS_READ, Capability.FS_WRITE)
Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]


def _patched(arguments: Mapping[str, object]) -> Sequence[str]:
    """The paths that a call of `patch` touches."""
    text, path = str(arguments["patch"]), str(arguments["path"])
    if bool(text) == bool(path):
        given = "both" if text else "neither"
        raise BadArguments(
            f"patch: give either `path` with `old_string` and `new_string`, or `patch`; {given} is there - at `$.path`"
        )
    return [name for each in parse_patch(text) for name in each.paths] if text else [path]


class FileTools:
    """The toolset `files`, for paths that `guard` allows.

    Writes are `keyed`, see `Changer`. `ripgrep` is the path of `rg`, empty to search without it; `buffers` are those
    of editors.
    """

    def __init__(
        self, *, guard: Guard, log: ReadLog, writer: Writer, ripgrep: str = "", buffers: Buffers | None = None
    ) -> None:
        self._guard = guard
        self._buffers = buffers or Buffers()
        self._log = log
        self._changer = Changer(guard=guard, log=log, writer=writer)
        self._ripgrep = ripgrep

    @tool(effect=Effect.READS, needs=READS, paths=("path",), origin=Origin.FILE)
    async def read_file(
        self, path: str, context: CallContext, offset: Positive = 1, limit: Annotated[int, Meta(ge=1, le=2000)] = 2000
    ) -> Answer:
        """Read a text file, PDF, notebook, docx or xlsx with line numbers (`12|text`), or look at a picture.

        Args:
            offset: first line
        """

        unsaved = await self._unsaved(context, [path])

        def read() -> Answer:
            real = self._guard.locate(path, context.workspace)
            if not real.exists():
                raise missing(real, path)
            page = Page(shown=path, offset=offset, limit=limit)
            reading = read_text(unsaved[real], page) if real in unsaved else read_page(real, page)
            if reading.digest:
                self._log.saw(context.session, real, reading.digest)
            return reading.answer

        return await asyncio.to_thread(read)

    @tool(effect=Effect.KEYED, needs=WRITES, paths=("path",), origin=Origin.FILE)
    async def write_file(self, path: str, content: str, context: CallContext) -> Answer:
        """Write a whole file, making folders. An existing one must have been read. Prefer patch for small changes."""
        changes = [Change(path=path, make=lambda before: _whole(before, content, path), blind=False)]
        unsaved = await self._unsaved(context, [path])
        return said(await asyncio.to_thread(lambda: self._changer.swap(context, changes, unsaved)), Origin.FILE)

    @tool(effect=Effect.KEYED, needs=WRITES, paths=_patched, origin=Origin.FILE)
    async def patch(
        self,
        context: CallContext,
        path: str = "",
        old_string: str = "",
        new_string: str = "",
        replace_all: bool = False,
        patch: str = "",
    ) -> Answer:
        """Replace text in a file, or change several files at once with `patch` alone. Answers with the diff.

        Args:
            old_string: text as in the file without line numbers; must be unique unless replace_all
            patch: "*** Begin Patch" format or a unified diff
        """

        unsaved = await self._unsaved(context, _patched({"patch": patch, "path": path}))

        def change() -> str:
            edits = Edits(guard=self._guard, workspace=context.workspace)
            if patch:
                return self._changer.swap(context, edits.of_patch(patch), unsaved)
            changes = [edits.replacing(path, old_string, new_string, everywhere=replace_all)]
            return self._changer.swap(context, changes, unsaved)

        return said(await asyncio.to_thread(change), Origin.FILE)

    @tool(effect=Effect.READS, needs=READS, paths=("path",), origin=Origin.FILE)
    async def search_files(  # noqa: PLR0913 - what a model may say of a search
        self,
        pattern: str,
        context: CallContext,
        target: Literal["content", "files"] = "content",
        path: str = ".",
        file_glob: str = "",
        limit: Positive = 50,
        offset: NotNegative = 0,
        output_mode: Literal["content", "files_only", "count"] = "content",
        context_lines: Annotated[int, Meta(ge=0, le=20)] = 0,
    ) -> Answer:
        """Search file contents by regular expression, or files by name (target=files, pattern is a glob). Skips .git,
        node_modules and the like. Prefer it to grep, find and ls.
        """
        real = await asyncio.to_thread(lambda: self._searchable(path, context.workspace))
        names = target == "files"
        query = searching.Query(
            root=real,
            pattern="" if names else pattern,
            glob=(pattern or "*") if names else file_glob,
            context=context_lines if output_mode == "content" else 0,
        )
        found = await searching.search(query, ripgrep=self._ripgrep)
        allowed = await asyncio.to_thread(lambda: self._allowed(found, real))
        return searching.listing(allowed, path, "files" if names else output_mode, offset=offset, limit=limit)

    async def _unsaved(self, context: CallContext, paths: Sequence[str]) -> Mapping[Path, bytes]:
        """What the editor of the session holds of these files and did not save."""
        if not self._buffers.has(context.session):
            return {}
        real = await asyncio.to_thread(lambda: [self._guard.locate(path, context.workspace) for path in paths])
        return await self._buffers.unsaved(context.session, real, context.workspace)

    def _searchable(self, path: str, workspace: str) -> Path:
        real = self._guard.locate(path, workspace)
        if not real.exists():
            raise missing(real, path)
        return real

    def _allowed(self, found: Found, root: Path) -> Found:
        """The results without files that may not be read."""
        verdict = {name: not self._guard.objection(root / name) for name in {hit.path for hit in found.hits}}
        return dataclasses.replace(found, hits=tuple(hit for hit in found.hits if verdict[hit.path]))


def _whole(before: Version, content: str, path: str) -> tuple[bytes, str]:
    """The content of a wholly rewritten file, in its previous encoding."""
    if before.content is not None and not is_text(before.content):
        raise ToolError(
            f"{path} holds bytes that are not text; writing it whole would destroy them.",
            hint="Use patch, or remove the file first.",
        )
    coding = UTF8 if before.content is None else coding_of(before.content)
    try:
        content.encode()
    except UnicodeEncodeError as error:
        raise ToolError("The text holds half of a surrogate pair, which no file can hold.") from error
    verb = "Created" if before.content is None else "Wrote"
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    return coding.encode(content), f"{verb} {path}, {lines} lines."


def file_tools(needs: Needs) -> FileTools:
    """Factory of the toolset `files`."""
    log = ReadLog(needs.get(Home).cache / "read")
    buffers, ripgrep = needs.get(Buffers), shutil.which("rg") or ""
    return FileTools(guard=needs.get(Guard), log=log, writer=Writer(), ripgrep=ripgrep, buffers=buffers)
