"""The shadow repository sees nothing of the person's own git."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.tools.checkpoints.shadow import CheckpointFailed, shadow_of


async def test_it_is_made_private_and_apart(tmp_path: Path):
    root = tmp_path / "work"
    root.mkdir()
    shadow = shadow_of(root, tmp_path / "checkpoints", "git")

    async with shadow.turn():
        (shadow.folder / "paths.left").touch()
        (shadow.folder / "packed-refs.lock").touch()
        shadow.sweep()
        config = (await shadow.run("config", "--list", "--show-origin", "--no-includes")).decode()

    assert list(root.iterdir()) == []
    assert not [*shadow.folder.glob("paths.*"), *shadow.folder.glob("*.lock")]
    assert shadow.folder.stat().st_mode & 0o077 == 0
    assert all(str(shadow.folder) in line or line.startswith("command line") for line in config.splitlines())


async def test_a_failure_is_told_in_gits_words(tmp_path: Path):
    shadow = shadow_of(tmp_path, tmp_path / "checkpoints", "git")

    async with shadow.turn():
        with pytest.raises(CheckpointFailed, match="git ls-tree failed: fatal: Not a valid object name nothing"):
            await shadow.run("ls-tree", "nothing")


def test_a_link_to_a_folder_has_the_folders_own_checkpoints(tmp_path: Path):
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to("work")

    assert shadow_of(tmp_path / "link", tmp_path, "git") == shadow_of(tmp_path / "work", tmp_path, "git")
