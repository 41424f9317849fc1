"""What Landlock is told to show: everything but what is hidden, in as few paths as there can be."""

from pathlib import Path

import pytest

from hermes_agent.sandbox.landlock import _seen


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "f").symlink_to("e")
    return tmp_path


def seen(folder: Path, *hidden: str) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in _seen(str(folder), [str(folder / name) for name in hidden])]


def test_where_nothing_is_hidden_the_folder_itself_is_seen(tree: Path):
    assert seen(tree) == ["."]


def test_the_way_to_what_is_hidden_is_seen_in_parts(tree: Path):
    assert seen(tree, "a/b/c") == ["a/d", "e"]
    assert seen(tree, "a") == ["e"]
    assert seen(tree, "a/d", "e") == ["a/b"]


def test_a_name_that_only_begins_alike_is_seen(tree: Path):
    (tree / "ee").mkdir()

    assert seen(tree, "e") == ["a", "ee"]


def test_what_is_hidden_itself_shows_nothing(tree: Path):
    assert seen(tree, ".") == []
