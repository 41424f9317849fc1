"""Reader of PDF documents: text by page, with pypdf."""

from __future__ import annotations

import io
import logging

from hermes_agent.host.late import libraries
from hermes_agent.tools.files.documents import Damaged

MOST_PAGES = 500


def lines_of(content: bytes) -> list[str]:
    """Lines with `[page 1 of 9]` before each page. Raises `Damaged`, also for one with a password."""
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of each oddity of each file
    module = libraries.pypdf
    try:
        reader = module.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Damaged("it needs a password")
        total = len(reader.pages)
        lines: list[str] = []
        for number in range(min(total, MOST_PAGES)):
            text = reader.pages[number].extract_text().strip()
            lines += [f"[page {number + 1} of {total}]", *(text.split("\n") if text else ["[no text on this page]"])]
    except Damaged:
        raise
    except (*_failures(), module.errors.PyPdfError) as error:
        raise Damaged(f"its structure is broken ({error or type(error).__name__})") from error
    return [*lines, f"[only the first {MOST_PAGES} of {total} pages]"] if total > MOST_PAGES else lines


def _failures() -> tuple[type[Exception], ...]:
    """Errors that pypdf raises for broken files, besides its own."""
    return (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, ArithmeticError, ImportError)
