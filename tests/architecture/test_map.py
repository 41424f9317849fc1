"""The maps lead somewhere: each path that AGENTS.md, README.md and the manual name is there."""

import re
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT

MAPS = sorted(
    ["AGENTS.md", "README.md", "CHANGELOG.md", *(str(file.relative_to(ROOT)) for file in ROOT.glob("docs/**/*.md"))]
)
LINES_OF_AGENTS = 100

QUOTED = re.compile(r"`([\w.*/-]*/[\w.*/-]*|[\w-]+\.(?:md|py|toml|lock))`")
LINKED = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def named_paths(text: str) -> list[str]:
    """What a page names as a path of the project: links, and in backticks what holds a slash or ends like a file."""
    return [path for path in QUOTED.findall(text) if not path.startswith(("/", "~"))] + LINKED.findall(text)


def lost(page: Path, root: Path) -> list[str]:
    """The paths that `page` names and that are neither beside it, nor below the root, the package or the tests."""
    bases = (page.parent, root, root / PACKAGE, root / "tests")
    return [
        path
        for path in named_paths(page.read_text())
        if not any(next(base.glob(path.removeprefix("./").rstrip("/") or "."), None) for base in bases)
    ]


@pytest.mark.parametrize("page", MAPS)
def test_every_path_on_the_map_is_there(page: str):
    assert lost(ROOT / page, ROOT) == []


def test_the_map_fits_on_a_screen_or_two():
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= LINES_OF_AGENTS


def test_a_path_that_leads_nowhere_is_found(tmp_path: Path):
    (tmp_path / "src/hermes_agent/core").mkdir(parents=True)
    (tmp_path / "src/hermes_agent/core/ids.py").touch()
    page = tmp_path / "MAP.md"
    page.write_text(
        "`core/ids.py`, `core/*.py`, `core/`, `core/gone.py`, [here](MAP.md), [there](gone.md), `--fast`, `/new`."
    )
    assert lost(page, tmp_path) == ["core/gone.py", "gone.md"]
