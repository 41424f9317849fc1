"""Reads one page of a file with line numbers, in bounded memory for any file."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.edits import plainer
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Image, Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.host.late import late
from hermes_agent.tools.files.content import SNIFFED, binary_kind, coding_of, image_type, storable
from hermes_agent.tools.files.documents import DOCUMENTS, Damaged
from hermes_agent.tools.files.guard import content_hash, open_regular
from hermes_agent.tools.schema import said

MOST_LINES = 2000
MOST_CHARS_A_LINE = 2000
MOST_BYTES = 100_000
READ_WHOLE = 64 << 20  # larger files are read as a stream, up to the page: no hash, no count of lines
IMAGE_BYTES = 5 << 20  # what a model's provider takes (Anthropic: 5 MB an image)
DOCUMENT_BYTES = 50 << 20
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A page of a file as an answer, and the hash of the whole content (empty if the file was not read whole)."""

    answer: Answer
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which lines of a file `read_file` shows (`offset` from 1), the file's display name, and a note."""

    shown: str
    offset: int
    limit: int
    note: str = ""


def read_page(real: Path, page: Page) -> Reading:
    """Read those lines of a file, or the picture. Raises `ToolError`."""
    shown = page.shown
    with os.fdopen(open_regular(real, shown), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.peek(SNIFFED)[:SNIFFED]
        if image_type(head):
            return _picture(file, shown, size, image_type(head))
        if size and (reader := _document(real.name, head)):
            return _read_document(file, reader, page)
        if binary_kind(head):
            raise ToolError(f"{shown} is {binary_kind(head)}, {size:,} bytes, not text.")
        if size > READ_WHOLE:
            return Reading(answer=_page(_streamed(file), page, total=None), digest="")
        content = file.read(READ_WHOLE + 1)
    return read_text(content, page)


def read_text(content: bytes, page: Page) -> Reading:
    """Those lines of a text. Raises `ToolError`."""
    coding = coding_of(content)
    plain = content.removeprefix(coding.mark)
    if coding.codec != "utf-8":
        plain = coding.decode(content).encode("utf-8", "replace")
    lines = plain.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    page = replace(page, note=f"[{coding.name}]" if coding.mark else "")
    return Reading(answer=_of_lines(lines, page), digest=content_hash(content))


def missing(real: Path, shown: str) -> ToolError:
    """The error for a missing file, with similar names."""
    folder = real.parent
    while not folder.is_dir():
        folder = folder.parent
    if folder != real.parent:
        return ToolError(f"{shown} does not exist.", hint=f"The nearest folder that exists is {folder}.")
    names = [entry.name for entry in os.scandir(folder)]
    near = [name for name in names if plainer(name).lower() == plainer(real.name).lower()]
    near += [name for name in get_close_matches(real.name, names, 3, 0.5) if name not in near]
    hint = f"Did you mean {', '.join(storable(name) for name in near)}?" if near else ""
    return ToolError(f"{shown} does not exist.", hint=hint)


def _picture(file: BufferedReader, shown: str, size: int, media_type: str) -> Reading:
    if size > IMAGE_BYTES:
        raise ToolError(f"{shown} is a picture of {size:,} bytes; at most {IMAGE_BYTES:,} can be looked at.")
    content = file.read(IMAGE_BYTES + 1)
    words = Text(text=f"[{shown}: {media_type}, {len(content):,} bytes]", origin=Origin.RUNTIME)
    picture = Image(media_type=media_type, data=base64.b64encode(content).decode(), origin=Origin.FILE)
    return Reading(answer=Answer(parts=(words, picture)), digest=content_hash(content))


def _streamed(file: BufferedReader) -> Iterator[bytes]:
    """Lines of which only the beginning is kept in memory."""
    while line := file.readline(_CHUNK):
        rest = line
        while len(rest) == _CHUNK and not rest.endswith(b"\n"):
            rest = file.readline(_CHUNK)
        yield line.removesuffix(b"\n")


def _document(name: str, head: bytes) -> str:
    """The document reader for this name and beginning; empty if none."""
    if head.startswith(b"%PDF-"):
        return DOCUMENTS[".pdf"]
    suffix = Path(name).suffix.lower()
    return "" if suffix == ".pdf" else DOCUMENTS.get(suffix, "")


def _read_document(file: BufferedReader, reader: str, page: Page) -> Reading:
    shown = page.shown
    content = file.read(DOCUMENT_BYTES + 1)
    if len(content) > DOCUMENT_BYTES:
        raise ToolError(f"{shown} is a document of more than {DOCUMENT_BYTES:,} bytes, too many to read here.")
    try:
        lines = late(reader)(content)
    except Damaged as error:
        raise ToolError(f"{shown} cannot be read: {error}.", hint="Look at it with the terminal.") from error
    page = replace(page, note="[the text of a document; patch cannot change it so]")
    # A notebook is text: who has seen its cells may write it whole.
    digest = content_hash(content) if shown.lower().endswith(".ipynb") else ""
    return Reading(answer=_of_lines([line.encode("utf-8", "replace") for line in lines], page), digest=digest)


def _of_lines(lines: Sequence[bytes], page: Page) -> Answer:
    return _page(iter(lines[page.offset - 1 :]), page, total=len(lines), skipped=True)


def _page(lines: Iterator[bytes], page: Page, *, total: int | None, skipped: bool = False) -> Answer:
    shown, offset = page.shown, page.offset
    if total == 0:
        return said(f"[{shown} is empty]", Origin.RUNTIME)
    for _ in range(0 if skipped else offset - 1):
        next(lines, None)
    written: list[str] = []
    size, number, damaged = 0, offset, False
    for line in lines:
        text = line.decode("utf-8", "replace").removesuffix("\r")
        damaged = damaged or ("\ufffd" in text and "\ufffd".encode() not in line)
        row = f"{number}|{_cut(text)}"
        size += len(row.encode()) + 1
        if number - offset >= page.limit or size > MOST_BYTES:
            break
        written.append(row)
        number += 1
    if not written:
        raise ToolError(f"{shown} has {total if total is not None else 'fewer'} lines; line {offset} is past its end.")
    notes = [page.note] if page.note else []
    rows = [*written, *_footer(offset, number, total, damaged=damaged), *notes]
    return said(storable("\n".join(rows)), Origin.FILE)


def _footer(offset: int, following: int, total: int | None, *, damaged: bool) -> list[str]:
    notes: list[str] = []
    if total is None or following <= total:
        whole = f"of {total}" if total is not None else "of a very large file"
        notes.append(f"[lines {offset}-{following - 1} {whole}; go on with offset={following}]")
    if damaged:
        notes.append("[some bytes are not UTF-8 and are shown as \ufffd; patch keeps them, write_file refuses]")
    return notes


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARS_A_LINE:
        return text
    return f"{text[:MOST_CHARS_A_LINE]}… [{len(text) - MOST_CHARS_A_LINE:,} more characters]"
