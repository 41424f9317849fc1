"""Table of document readers: converts PDF, notebook, Word and Excel files to lines of text, by suffix."""

from __future__ import annotations

from hermes_agent.core.errors import ToolError

DOCUMENTS: dict[str, str] = {
    ".pdf": "hermes_agent.tools.files.documents.pdf:lines_of",
    ".ipynb": "hermes_agent.tools.files.documents.notebook:lines_of",
    ".docx": "hermes_agent.tools.files.documents.word:lines_of",
    ".xlsx": "hermes_agent.tools.files.documents.sheet:lines_of",
}
"""Suffix of a file's name -> a function that takes its content and gives its lines; it raises `Damaged`."""


class Damaged(ToolError):
    """The document cannot be read; the message says why."""
