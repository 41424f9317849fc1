"""The file tools as a model sees them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from msgspec import Meta

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import StaleWrite, ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.host.late import late
from hermes_agent.tools.files.content import binary_kind, is_utf8, newline_of, storable
from hermes_agent.tools.files.diff import unified
from hermes_agent.tools.files.edits import replace
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.reading import missing, read_page
from hermes_agent.tools.files.readlog import ReadLog, content_hash
from hermes_agent.tools.files.writing import Version, Writer, version_of
from hermes_agent.tools.schema import said

if TYPE_CHECKING:
    from hermes_agent.tools.files.searching import Found, Hit

# Searching runs a process of its own; its machinery is loaded with the first search.
QUERY = "hermes_agent.tools.files.searching:Query"
SEARCH = "hermes_agent.tools.files.searching:search"
T = TypeVar("T")
READS, WRITES = (Capability.FS_READ,), (Capability.FS_READ, Capability.FS_WRITE)
Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]


class FileTools:
    """read_file, write_file, patch and search_files over the files that `guard` allows.

    Writes are `keyed`: the intent of each is in `log` before the file changes, so that a call that is made again after
    a crash finds out that it had happened. `ripgrep` is the path of `rg`, empty to search without it.
    """

    def __init__(self, *, guard: Guard, log: ReadLog, writer: Writer, ripgrep: str = "") -> None:
        self._guard = guard
        self._log = log
        self._writer = writer
        self._ripgrep = ripgrep

    @tool(effect=Effect.READS, needs=READS, paths=("path",))
    async def read_file(
        self, path: str, context: CallContext, offset: Positive = 1, limit: Annotated[int, Meta(ge=1, le=2000)] = 2000
    ) -> Answer:
        """Read a text file with line numbers (`12|text`), or look at a picture.

        Args:
            offset: first line
        """

        def read() -> Answer:
            real = self._guard.locate(path, context.workspace)
            if not real.exists():
                raise missing(real, path)
            reading = read_page(real, path, offset=offset, limit=limit)
            if reading.digest:
                self._log.saw(context.session, real, reading.digest)
            return reading.answer

        return await _in_thread(read)

    @tool(effect=Effect.KEYED, needs=WRITES, paths=("path",))
    async def write_file(self, path: str, content: str, context: CallContext) -> Answer:
        """Write a whole file, making folders. An existing one must have been read. Prefer patch for small changes."""

        def change(before: Version) -> tuple[bytes, str]:
            if before.content is not None and not is_utf8(before.content):
                raise ToolError(
                    f"{path} holds bytes that are not UTF-8 text; writing it whole would destroy them.",
                    hint="Use patch, or remove the file first.",
                )
            verb = "Created" if before.content is None else "Wrote"
            lines = content.count("\n") + (not content.endswith("\n") and content != "")
            return _encoded(content), f"{verb} {path}, {lines} lines."

        return await self._swap(path, context, change, blind=False)

    @tool(effect=Effect.KEYED, needs=WRITES, paths=("path",))
    async def patch(
        self, path: str, old_string: str, new_string: str, context: CallContext, replace_all: bool = False
    ) -> Answer:
        """Replace text in a file. Answers with the diff.

        Args:
            old_string: text as in the file without line numbers; must be unique unless replace_all
        """

        def change(before: Version) -> tuple[bytes, str]:
            if before.content is None:
                raise missing(self._guard.locate(path, context.workspace), path)
            if binary_kind(before.content[:8192]):
                raise ToolError(f"{path} is {binary_kind(before.content[:8192])}, not text.")
            text = before.content.decode("utf-8", "surrogateescape")
            crlf = newline_of(before.content) == "\r\n" and text.count("\n") == text.count("\r\n")
            plain = text.replace("\r\n", "\n") if crlf else text
            old, new = (part.replace("\r\n", "\n") if crlf else part for part in (old_string, new_string))
            _encoded(new)
            done = replace(plain, old, new, everywhere=replace_all)
            after = done.content.replace("\n", "\r\n") if crlf else done.content
            note = "" if done.strategy == "exact" else f" ({done.strategy})"
            places = "" if done.count == 1 else f" at {done.count} places"
            return after.encode("utf-8", "surrogateescape"), f"Patched {path}{places}{note}."

        return await self._swap(path, context, change, blind=True)

    @tool(effect=Effect.READS, needs=READS, paths=("path",))
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
        real = await _in_thread(lambda: self._searchable(path, context.workspace))
        names = target == "files"
        query = late(QUERY)(
            root=real,
            pattern="" if names else pattern,
            glob=(pattern or "*") if names else file_glob,
            context=context_lines if output_mode == "content" else 0,
        )
        found = await late(SEARCH)(query, ripgrep=self._ripgrep)
        allowed = await _in_thread(lambda: self._allowed(found, real))
        return _listing(allowed, path, "files" if names else output_mode, offset=offset, limit=limit)

    def _searchable(self, path: str, workspace: str) -> Path:
        real = self._guard.locate(path, workspace)
        if not real.exists():
            raise missing(real, path)
        return real

    def _allowed(self, found: Found, root: Path) -> Found:
        """What was found without the files that may not be read."""
        verdict = {name: not self._guard.objection(root / name) for name in {hit.path for hit in found.hits}}
        return dataclasses.replace(found, hits=tuple(hit for hit in found.hits if verdict[hit.path]))

    async def _swap(
        self, path: str, context: CallContext, change: Callable[[Version], tuple[bytes, str]], *, blind: bool
    ) -> Answer:
        """Change a file by compare-and-swap; `blind` allows a file that this session has never read."""

        def swap() -> Answer:
            real = self._guard.locate(path, context.workspace, writes=True)
            before = version_of(real, path)
            earlier = self._log.intended(context.session, real, key=context.key)
            if earlier is not None and before.digest == earlier.hash:
                self._log.saw(context.session, real, earlier.hash)
                return said(earlier.answer)
            self._check_known(path, real, before, context.session, blind=blind)
            content, done = change(before)
            answer = f"{done}{_shown_diff(before, content, path)}"
            digest = content_hash(content)
            self._log.intend(context.session, real, key=context.key, digest=digest, answer=answer)
            self._writer.swap(real, path, content, over=before)
            self._log.saw(context.session, real, digest)
            return said(answer)

        return await _in_thread(swap)

    def _check_known(self, path: str, real: Path, before: Version, session: str, *, blind: bool) -> None:
        known = self._log.known(session, real)
        if before.content in (None, b"") or known == before.digest or (blind and not known):
            return
        happened = "changed since it was read" if known else "exists and was not read in this conversation"
        raise StaleWrite(f"{path} {happened}; nothing was written.", hint="Read it, then write again.")


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


def _encoded(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError("The text holds half of a surrogate pair, which no file can hold.") from error


def _shown_diff(before: Version, content: bytes, path: str) -> str:
    if before.content is None:
        return ""
    if before.content == content:
        return " The content is the same as before."
    old, new = (storable(part.decode("utf-8", "replace").replace("\r\n", "\n")) for part in (before.content, content))
    return f"\n{unified(old, new, path)}"


def _listing(found: Found, path: str, mode: str, *, offset: int, limit: int) -> Answer:
    """The page of results that was asked for, and how to go on where there are more."""
    rows = _rows(found, mode, path)
    page = [row for number, row in rows if offset <= number < offset + limit]
    total = rows[-1][0] + 1 if rows else 0
    if not page:
        return said("Nothing found." if total == 0 else f"There are only {total} results.")
    if total > offset + limit or found.cut:
        more = "more than " if found.cut else ""
        page.append(f"[{more}{total} results; go on with offset={min(offset + limit, total)}]")
    return said(storable("\n".join(page)), origin=Origin.FILE)


def _rows(found: Found, mode: str, path: str) -> list[tuple[int, str]]:
    """Lines to show, each with the number of the result that it belongs to."""
    match mode:
        case "content":
            return list(_lines(found, path))
        case "count":
            counts: dict[str, int] = {}
            for hit in found.hits:
                counts[hit.path] = counts.get(hit.path, 0) + hit.matches
            return [(number, f"{_name(path, name)}: {count}") for number, (name, count) in enumerate(counts.items())]
        case _:
            names = dict.fromkeys(hit.path for hit in found.hits)
            return [(number, _name(path, name)) for number, name in enumerate(names)]


def _lines(found: Found, path: str) -> list[tuple[int, str]]:
    rows: list[tuple[int, str]] = []
    matches = -1
    last: Hit | None = None
    for hit in found.hits:
        matches += hit.matches
        name = _name(path, hit.path)
        if (
            last is not None
            and last.number
            and (last.path != hit.path or hit.number > last.number + 1)
            and _has_context(found)
        ):
            rows.append((max(matches, 0), "--"))
        rows.append((max(matches, 0), f"{name}:{hit.number}{':' if hit.matches else '-'} {hit.text[:500]}"))
        last = hit
    return rows


def _has_context(found: Found) -> bool:
    return any(not hit.matches for hit in found.hits)


def _name(path: str, found: str) -> str:
    folder = path.removeprefix("./").rstrip("/")
    if folder in ("", "."):
        return found
    return f"{folder}/{found}" if found else folder
