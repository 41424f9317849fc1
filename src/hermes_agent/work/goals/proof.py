"""What a folder has to prove that work in it is good: the command that its own files name."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

LONGEST = 100_000
"""Characters of a file that are looked at."""
RECIPE = r"^(check|test)\b[^=\n]*:(?!=)"
IN_CI = (
    r"^\s*(?:- )?run: *((?=.*\b(?:pytest|tox|tests?|check)\b)(?:uv run |poetry run )?"
    r"(?:pytest|just|make|npm|tox|cargo|go)(?: [\w ./:=-]*)?)$"
)
PROOFS = (
    ("[jJ]ustfile", RECIPE, "just {}"),
    ("Makefile", RECIPE, "make {}"),
    (".github/workflows/*.y*ml", IN_CI, "{}"),
    ("pyproject.toml", "pytest", "pytest -q"),
    ("pytest.ini", "", "pytest -q"),
    ("tests/test_*.py", "", "pytest -q"),
    # `npm init` writes a test that fails.
    ("package.json", r'"test" *: *"(?!.*no test specified)', "npm test"),
    ("Cargo.toml", "", "cargo test"),
    ("go.mod", "", "go test ./..."),
)
"""Files, what has to stand in them, and the command with what the pattern found."""


def proof_in(folder: str) -> str:
    """The command by which a folder's tests are run; empty where no file names one. Blocks."""
    here = Path(folder)
    with suppress(OSError):
        named = [
            (file, words, command)
            for names, words, command in PROOFS
            for file in sorted(here.glob(names))
            if file.is_file()
        ]
        for file, pattern, command in named:
            if found := re.search(pattern, _text(file), re.MULTILINE):
                return command.format(*found.groups()).strip()
    return ""


def _text(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as text:
        return text.read(LONGEST)
