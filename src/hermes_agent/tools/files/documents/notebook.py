"""Reader of Jupyter notebooks (nbformat 4): cells with their text outputs."""

from __future__ import annotations

import json
from typing import Any

from hermes_agent.tools.files.documents import Damaged

MOST_OUTPUT_LINES = 40


def lines_of(content: bytes) -> list[str]:
    """Lines with `[cell 3, code]` before each cell and `[output]` before what it printed. Raises `Damaged`."""
    try:
        notebook = json.loads(content)
        cells = notebook["cells"]
        return [line for number, cell in enumerate(cells, 1) for line in _cell(number, cell)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged("it is not a notebook of format 4") from error


def _cell(number: int, cell: dict[str, Any]) -> list[str]:
    lines = [f"[cell {number}, {cell['cell_type']}]", *_text(cell.get("source", "")).split("\n")]
    for output in cell.get("outputs", ()):
        shown = _output(output).rstrip("\n").split("\n")
        more = len(shown) - MOST_OUTPUT_LINES
        lines += ["[output]", *shown[:MOST_OUTPUT_LINES], *([f"[{more} more lines]"] if more > 0 else [])]
    return lines


def _output(output: dict[str, Any]) -> str:
    match output.get("output_type"):
        case "stream":
            return _text(output.get("text", ""))
        case "error":
            return f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
        case _:
            data = output.get("data", {})
            kinds = ", ".join(kind for kind in data if kind != "text/plain")
            return _text(data.get("text/plain", "")) + (f"\n[also: {kinds}]" if kinds else "")


def _text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)
