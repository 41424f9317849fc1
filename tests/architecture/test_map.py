"""The maps lead somewhere: each path that AGENTS.md, README.md and the manual name is there."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT

PAGES = sorted(
    ["AGENTS.md", "README.md", "CHANGELOG.md", *(str(file.relative_to(ROOT)) for file in ROOT.glob("docs/**/*.md"))]
)
# Pages that speak of the source. On the others a quoted path may be the reader's own.
MAPS = {
    "AGENTS.md",
    "README.md",
    "docs/architecture.md",
    "docs/extending.md",
    *(page for page in PAGES if page.startswith("docs/decisions/")),
}
LINES_OF_AGENTS = 100
ELSEWHERE = {"SOUL.md", "app/operations/origins.py", "tests/app/operations/test_origins.py"}
"""What a home has, and what the example of an operation would add."""

QUOTED = re.compile(r"`([\w.*/-]*/[\w.*/-]*|[\w-]+\.(?:md|py|toml|lock))`")
LINKED = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def linked_paths(text: str) -> list[str]:
    return LINKED.findall(text)


def quoted_paths(text: str) -> list[str]:
    """What stands in backticks and holds a slash or ends like a file, but for `/commands`, what is made later and files
    of any NAME."""
    return [
        path
        for path in QUOTED.findall(text)
        if not path.startswith(("/", "~", "HERMES_HOME", ".venv")) and path not in ELSEWHERE and "NAME" not in path
    ]


def lost(page: Path, root: Path, paths: Iterable[str]) -> list[str]:
    """The paths that are neither beside `page`, nor below the root, the package or the tests."""
    bases = (page.parent, root, root / PACKAGE, root / "tests")
    return [
        path
        for path in paths
        if not any(next(base.glob(path.removeprefix("./").rstrip("/") or "."), None) for base in bases)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str):
    assert lost(ROOT / page, ROOT, linked_paths((ROOT / page).read_text())) == []


@pytest.mark.parametrize("page", sorted(MAPS))
def test_every_path_on_the_map_is_there(page: str):
    assert lost(ROOT / page, ROOT, quoted_paths((ROOT / page).read_text())) == []


def test_the_map_fits_on_a_screen_or_two():
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= LINES_OF_AGENTS


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "src/hermes_agent/core").mkdir(parents=True)
    (tmp_path / "src/hermes_agent/core/clock.py").touch()
    (tmp_path / "MAP.md").touch()
    return tmp_path / "MAP.md"


def test_a_quoted_path_that_leads_nowhere_is_found(page: Path):
    text = (
        "`core/clock.py`, `core/*.py`, `core/`, `core/gone.py`, `--fast`, `/new`, `HERMES_HOME/config.yaml`, `SOUL.md`."
    )
    assert lost(page, page.parent, quoted_paths(text)) == ["core/gone.py"]


def test_a_link_that_leads_nowhere_is_found(page: Path):
    text = "[here](MAP.md), [a part](MAP.md#top), [there](gone.md), [out](https://example.org/a.md), [below](#top)"
    assert lost(page, page.parent, linked_paths(text)) == ["gone.md"]
