"""The results of a search as a model reads them: a page of lines, names or counts, and how to go on."""

from __future__ import annotations

from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import Answer
from hermes_agent.tools.files.content import storable
from hermes_agent.tools.files.searching import Found, Hit
from hermes_agent.tools.schema import said


def listing(found: Found, path: str, mode: str, *, offset: int, limit: int) -> Answer:
    """The page of results that was asked for, and how to go on where there are more. `mode` is `content`, `count` or
    anything else for names."""
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
