"""docs/moved.md leads somewhere: each place that it names is there, and no module stands in it that did not move."""

import importlib
import re
from pathlib import Path

from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGE = (DOCS / "moved.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
MOVED = [row for row in ROWS if len(row) == 3 and re.fullmatch(r"[\w.]+\.\w+", row[0])]
NAMES = [row for row in ROWS if len(row) == 2 and re.fullmatch(r"[\w.]+ \w+", row[0])]
IMPORTED = [row for row in ROWS if row[0].startswith("`hermes_agent")]


def file_of(module: str) -> Path:
    path = ROOT / (module if module.startswith("tests.") else f"src.hermes_agent.{module}").replace(".", "/")
    package = path / "__init__.py"  # A folder alone may be what an older checkout left.
    return package if package.exists() else path.with_suffix(".py")


def lacks(module: str, name: str) -> bool:
    """Whether a module has no such definition at its top."""
    first = rf"^(class|def|async def) {name}\b|^\s*{name}(: [^=]+)? = "
    return not re.search(first, file_of(module).read_text(), re.MULTILINE)


def test_every_module_that_moved_leads_to_one_that_is_there():
    assert len(MOVED) > 300
    assert [before for before, *_ in MOVED if file_of(before).exists()] == []
    assert [now for _, now, _ in MOVED if now != "-" and not file_of(now.strip("`")).exists()] == []


def test_every_name_that_moved_is_there():
    called = [(now.strip("`"), name) for _, now, more in MOVED for name in re.findall(r"` is `(\w+)`", more)]
    elsewhere = [
        (module, found[1] or found[0])
        for *_, more in MOVED
        for names, module in re.findall(r"((?:`\w+`(?: \(`\w+`\))?(?:, )?)+) in `([\w.]+)`", more)
        for found in re.findall(r"`(\w+)`(?: \(`(\w+)`\))?", names)
    ]
    alone = [tuple(now.replace("`", "").split()) for _, now in NAMES]

    assert len(called) > 50
    assert len(elsewhere) > 15
    assert [where for where in (*called, *elsewhere, *alone) if lacks(*where)] == []


def test_what_the_manual_imported_is_imported_as_before():
    assert len(IMPORTED) > 10
    for module, names, _ in IMPORTED:
        for name in re.findall(r"`(\w+)`", names):
            assert hasattr(importlib.import_module(module.strip("`")), name)


def test_the_changelog_leads_there():
    assert "docs/moved.md" in (ROOT / "CHANGELOG.md").read_text()
