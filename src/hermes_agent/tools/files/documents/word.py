"""Reader of Word documents (docx): paragraphs and tables in order, with python-docx."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from hermes_agent.host.late import libraries
from hermes_agent.tools.files.documents import Damaged

MOST_UNPACKED = 300 << 20
MOST_LINES = 200_000


def check_archive(content: bytes) -> None:
    """Raise `Damaged` if an office document is no zip archive, or unpacks to more than 300 MB."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise Damaged("it is not an office document, or it is cut off") from error
    if size > MOST_UNPACKED:
        raise Damaged(f"it unpacks to {size:,} bytes")


def lines_of(content: bytes) -> list[str]:
    """Headings as `## words`, list items as `- words`, a table's rows as `a | b`. Raises `Damaged`."""
    check_archive(content)
    module = libraries.docx
    try:
        document = module.Document(io.BytesIO(content))
        return list(_blocks(document.iter_inner_content()))
    except (module.opc.exceptions.OpcError, ValueError, KeyError, SyntaxError, AttributeError) as error:
        raise Damaged("it is not a Word document") from error


def _blocks(items: Iterator[Any]) -> Iterator[str]:
    """Lines of the library's untyped paragraphs and tables."""
    for item in items:
        if hasattr(item, "rows"):
            for row in item.rows:
                yield " | ".join(" ".join(cell.text.split()) for cell in row.cells)
        else:
            yield from (_mark(item.style.name if item.style else "") + item.text).split("\n")


def _mark(style: str) -> str:
    level = style.rpartition(" ")[2]
    if style.startswith("Heading") and level.isdigit():
        return "#" * int(level) + " "
    return {"Title": "# "}.get(style, "- " if style.startswith("List") else "")
