"""Reader of Excel workbooks (xlsx): cell values by sheet and row, with openpyxl."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any

from hermes_agent.host.late import libraries
from hermes_agent.tools.files.documents import Damaged
from hermes_agent.tools.files.documents.word import MOST_LINES, check_archive


def lines_of(content: bytes) -> list[str]:
    """Lines with `[sheet NAME]` before each sheet; cells are separated by tabs, trailing empty ones dropped. Raises
    `Damaged`.

    Formulas show their last computed value.
    """
    check_archive(content)
    library = libraries.openpyxl
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells of every extension of the format that it leaves out
            book = library.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            try:
                return list(_rows(book))
            finally:
                book.close()
    except (
        library.utils.exceptions.InvalidFileException,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        SyntaxError,
    ) as error:
        raise Damaged("it is not an Excel workbook") from error


def _rows(book: Any) -> Iterator[str]:  # noqa: ANN401 - the library's own workbook, which it does not type
    left = MOST_LINES
    for sheet in book.worksheets:
        yield f"[sheet {sheet.title}]"
        for row in sheet.iter_rows(values_only=True):
            left -= 1
            if left < 0:
                yield f"[only the first {MOST_LINES:,} rows]"
                return
            yield "\t".join("" if value is None else str(value).replace("\n", " ") for value in row).rstrip("\t")
