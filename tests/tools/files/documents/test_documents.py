"""Documents of each kind are read as text; broken ones are an answer."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from docx import Document
from openpyxl import Workbook
from pypdf import PdfWriter

from hermes_agent.core.errors import ToolError
from hermes_agent.host.late import late
from hermes_agent.tools.files.documents import DOCUMENTS, Damaged, notebook, pdf, sheet, word
from hermes_agent.tools.files.documents.word import check_archive
from tests.tools.bench import Bench


def make_pdf(*pages: str) -> bytes:
    """A PDF of text alone, written by hand (ISO 32000-1, 7.5)."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        bodies += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(bodies) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{table}".encode()
    start = out.index(b"xref\n")
    return out + f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()


def make_docx() -> bytes:
    document, out = Document(), io.BytesIO()
    document.add_heading("Plan", 1)
    document.add_paragraph("First words.")
    document.add_paragraph("an item", style="List Bullet")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.add_paragraph("Last words.")
    document.save(out)
    return out.getvalue()


def make_xlsx() -> bytes:
    book, out = Workbook(), io.BytesIO()
    book.active.title = "Costs"
    book.active.append(["what", None, "how much"])
    book.active.append(["tea", None, 2.5])
    book.create_sheet("Empty")
    book.save(out)
    return out.getvalue()


def make_notebook() -> bytes:
    outputs = [
        {"output_type": "stream", "text": ["1\n", "2\n"]},
        {"output_type": "display_data", "data": {"text/plain": "<plot>", "image/png": "aGk="}},
        {"output_type": "error", "ename": "ValueError", "evalue": "no"},
    ]
    cells = [
        {"cell_type": "markdown", "source": "# Title"},
        {"cell_type": "code", "source": ["x = 1\n", "print(x)"], "outputs": outputs},
    ]
    return json.dumps({"nbformat": 4, "cells": cells}).encode()


def test_a_pdf_is_read_page_by_page():
    lines = pdf.lines_of(make_pdf("Hello there", "", "The end"))

    assert lines == [
        "[page 1 of 3]",
        "Hello there",
        "[page 2 of 3]",
        "[no text on this page]",
        "[page 3 of 3]",
        "The end",
    ]


def test_a_pdf_with_a_password_says_so():
    writer, out = PdfWriter(), io.BytesIO()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(out)

    with pytest.raises(Damaged, match="password"):
        pdf.lines_of(out.getvalue())


def test_a_word_document_is_read_in_its_order():
    assert word.lines_of(make_docx()) == ["# Plan", "First words.", "- an item", "left | right", "Last words."]


def test_a_workbook_is_read_sheet_by_sheet():
    assert sheet.lines_of(make_xlsx()) == ["[sheet Costs]", "what\t\thow much", "tea\t\t2.5", "[sheet Empty]"]


def test_a_notebook_is_read_with_what_it_printed():
    lines = notebook.lines_of(make_notebook())

    assert lines[:6] == ["[cell 1, markdown]", "# Title", "[cell 2, code]", "x = 1", "print(x)", "[output]"]
    assert lines[6:] == ["1", "2", "[output]", "<plot>", "[also: image/png]", "[output]", "ValueError: no"]


@pytest.mark.parametrize("suffix", DOCUMENTS)
@pytest.mark.parametrize("spoil", [lambda raw: raw[: len(raw) // 2], lambda raw: b"\0\1\2" * 9, lambda raw: b"{}"])
def test_a_damaged_document_is_an_answer(suffix: str, spoil: Callable[[bytes], bytes]):
    made = {".pdf": make_pdf("x"), ".docx": make_docx(), ".xlsx": make_xlsx(), ".ipynb": make_notebook()}

    with pytest.raises(Damaged):
        late(DOCUMENTS[suffix])(spoil(made[suffix]))


def test_an_archive_that_unpacks_without_end_is_refused():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a", "w", force_zip64=True) as entry:
        for _ in range(31):
            entry.write(bytes(10 << 20))

    with pytest.raises(Damaged, match="unpacks to"):
        check_archive(out.getvalue())


async def test_the_tool_shows_documents_in_pages(files: Bench, workspace: Path):
    (workspace / "a.pdf").write_bytes(make_pdf("one", "two"))

    answer = await files("read_file", path="a.pdf", offset=3, limit=1)

    assert answer.startswith("3|[page 2 of 2]\n[lines 3-3 of 4; go on with offset=4]")
    with pytest.raises(ToolError, match="past its end"):
        await files("read_file", path="a.pdf", offset=99)


async def test_the_tool_says_why_a_document_cannot_be_read(files: Bench, workspace: Path):
    (workspace / "a.xlsx").write_bytes(b"PK\3\4 but no more")

    with pytest.raises(ToolError, match=r"a.xlsx cannot be read: it is not an office document"):
        await files("read_file", path="a.xlsx")
