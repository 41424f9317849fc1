"""Where a command may write, and what would be lost."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.tools.danger.verdict import Where, is_below


def test_a_path_that_nobody_knows_is_outside() -> None:
    here = Where(folder="/w", writable=("/w",))

    paths = ["a", "../b", "~/c", "\ue000/d", "e/\ue000f", "/dev/null", "\ue001"]
    assert [here.is_outside(path) for path in paths] == [False, True, True, True, False, False, True]


def test_a_link_out_of_the_workspace_is_outside(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path)
    where = Where(folder=str(tmp_path / "work"), writable=(str(tmp_path / "work"),))

    assert where.is_outside("link/x")
    assert not where.is_outside("x")


def test_files_that_are_made_again_are_not_lost(tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/big").write_text("x")
    where = Where(folder=str(tmp_path), writable=(str(tmp_path),), largest=0)

    assert not where.is_lost("node_modules/big")
    assert not where.is_lost("node*")


def test_below_is_not_beside() -> None:
    assert is_below("/a/b", "/a")
    assert not is_below("/ab", "/a")
    assert not is_below("/a", "")
