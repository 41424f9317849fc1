"""The kernel tells of files that are written."""

import asyncio
from pathlib import Path

from hermes_agent.host.file_watch import watching


async def test_what_is_written_or_moved_there_is_heard_of(tmp_path: Path):
    heard: list[str] = []
    with watching(tmp_path, heard.append) as hears:
        assert hears
        (tmp_path / "written").write_text("a")
        (tmp_path / "new").write_text("a")
        (tmp_path / "new").replace(tmp_path / "moved")
        (tmp_path / "moved").unlink()
        async with asyncio.timeout(5):
            while len(heard) < 3:
                await asyncio.sleep(0.01)

    (tmp_path / "written").write_text("b")
    await asyncio.sleep(0.05)
    assert heard == ["written", "new", "moved"]


async def test_a_folder_that_is_not_there_cannot_be_watched(tmp_path: Path):
    with watching(tmp_path / "nowhere", lambda _: None) as hears:
        assert not hears
