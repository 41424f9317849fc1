"""The manual as its tests see it: pages, their headings, sections, tables and links."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.architecture.source import ROOT

DOCS = ROOT / "docs"
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
CELL = re.compile(r"(?<!\\)\|")


def page(name: str) -> str:
    """The text of a page of `docs/`."""
    return (DOCS / name).read_text()


def prose(text: str) -> str:
    """The page without its code blocks; every line keeps its number."""
    return FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)


def sections(text: str, level: int) -> dict[str, str]:
    """Heading of that level -> what stands below it, up to the next heading of that level or above."""
    plain = prose(text)
    heads = [found for found in HEADING.finditer(plain) if len(found[1]) <= level]
    ends = [found.start() for found in heads[1:]] + [len(plain)]
    return {
        found[2].replace("`", ""): plain[found.end() : end]
        for found, end in zip(heads, ends, strict=True)
        if len(found[1]) == level
    }


def table(text: str, first: str) -> list[tuple[str, ...]]:
    """The rows of the table whose first column is called `first`; none where there is no such table."""
    rows: list[tuple[str, ...]] = []
    inside = False
    for line in prose(text).splitlines():
        cells = tuple(cell.strip().replace("\\|", "|") for cell in CELL.split(line)[1:-1])
        if not cells:
            inside = False
        elif cells[0] == first:
            inside = True
        elif inside and set(line) - set("|-: "):
            rows.append(cells)
    return rows


def code(text: str) -> list[str]:
    """What stands between backticks."""
    return CODE.findall(prose(text))


def links(text: str) -> list[str]:
    """Where the page links to, but for other hosts."""
    return LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """The names that the page's headings can be linked by, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", found[2].lower()).replace(" ", "-") for found in HEADING.finditer(prose(text))}


def dead_links(file: Path) -> list[str]:
    """Links of a file that lead to no file, or to no heading of it."""
    return [link for link in links(file.read_text()) if not _leads_somewhere(file, link)]


def _leads_somewhere(file: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (file.parent / path).resolve() if path else file
    return target.exists() and (not anchor or anchor in anchors(target.read_text()))


def out_of_step(said: Iterable[str], real: Iterable[str]) -> list[str]:
    """What the manual leaves out, and what it names though it is not there."""
    told, there = set(said), set(real)
    return [f"{name}: is not in the manual" for name in sorted(there - told)] + [
        f"{name}: is in the manual and not there" for name in sorted(told - there)
    ]


def yaml_blocks(text: str) -> Iterator[str]:
    """The YAML blocks of a page."""
    return (found[1] for found in re.finditer(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
