"""What a folder has to prove that work in it is good: the command that its own files name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

LONGEST = 100_000
"""Characters of a file that are looked at."""
IN_CI = re.compile(
    r"^\s*(?:- )?run: *((?:uv run |poetry run )?(?:pytest|just|make|npm|tox|cargo|go) ?[\w ./:=-]*)$", re.M
)
TESTS = re.compile(r"\b(pytest|tox|tests?|check)\b")
RECIPE = re.compile(r"^(check|test)\b[^=\n]*:(?!=)", re.M)


def proof_in(folder: str) -> str:
    """The command by which a folder's tests are run; empty where no file names one. Blocks."""
    here = Path(folder)
    try:
        return next(_named(here), "")
    except OSError:
        return ""


def _named(here: Path) -> Iterator[str]:
    for name, tool in (("justfile", "just"), ("Justfile", "just"), ("Makefile", "make")):
        if found := RECIPE.search(_text(here / name)):
            yield f"{tool} {found[1]}"
    for file in sorted(here.glob(".github/workflows/*.y*ml")):
        yield from (found.strip() for found in IN_CI.findall(_text(file)) if TESTS.search(found))
    if (
        "pytest" in _text(here / "pyproject.toml")
        or (here / "pytest.ini").is_file()
        or any(here.glob("tests/test_*.py"))
    ):
        yield "pytest -q"
    if _script(_text(here / "package.json")):
        yield "npm test"
    yield from (
        command
        for name, command in (("Cargo.toml", "cargo test"), ("go.mod", "go test ./..."))
        if (here / name).is_file()
    )


def _script(text: str) -> bool:
    """Whether a package has a test of its own: `npm init` writes one that fails."""
    try:
        scripts = json.loads(text or "{}").get("scripts")
    except (ValueError, AttributeError):
        return False
    test = scripts.get("test") if isinstance(scripts, dict) else None
    return isinstance(test, str) and "no test specified" not in test


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(LONGEST)
