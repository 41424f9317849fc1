"""A folder in a place: what its tools say of it is read as it was meant, and no more of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.here import Rules
from hermes_agent.sandbox.sync.there import Shell, There
from tests.sandbox.sync.local_shell import LocalShell


class Says:
    """A shell that says what a test wants."""

    def __init__(self, words: bytes) -> None:
        self.words = words

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes:
        return self.words


def there(folder: Path, shell: Shell | None = None) -> There:
    return There(shell=shell or LocalShell(), folder=str(folder), rules=Rules())


async def test_files_are_listed_with_what_tells_that_they_changed(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("12345")
    (tmp_path / "run").chmod(0o755)
    found = await there(tmp_path).scan()

    assert found is not None
    stat = (tmp_path / "run").stat()
    assert found[0].stamps == {"run": (5, int(stat.st_mtime), int(stat.st_ctime), stat.st_ino)}
    assert found[0].programs == {"run"}


async def test_no_folder_is_none(tmp_path: Path) -> None:
    assert await there(tmp_path / "nope").scan() is None


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a//b", ".", "a/../b", ".git/hooks/x", "id_rsa"])
async def test_names_that_lead_out_or_stay_there_are_passed_by(tmp_path: Path, name: str) -> None:
    said = f"100\n81a4 5 1 1 1 ./{name}\nwhat is this\n81a4 5 1 1 1 ./good\n".encode()
    found = await there(tmp_path, Says(said)).scan()

    assert found is not None
    assert list(found[0].stamps) == ["good"]


async def test_hashes_are_read_also_of_names_with_backslashes(tmp_path: Path) -> None:
    (tmp_path / "a\\b").write_text("x")
    (tmp_path / "c").write_text("x")
    digests = await there(tmp_path).digests(["a\\b", "c", "gone"])

    assert set(digests) == {"a\\b", "c"}
    assert digests["a\\b"] == digests["c"]


async def test_nothing_is_asked_about_nothing(tmp_path: Path) -> None:
    shell = LocalShell()
    side = there(tmp_path, shell)

    assert await side.digests([]) == {}
    assert await side.fetch([]) == b""
    await side.remove([])
    assert shell.scripts == []


async def test_what_fails_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlaceFailed):
        await there(tmp_path).send(b"no archive at all" * 100)
    with pytest.raises(PlaceFailed):
        await there(tmp_path / "nope").fetch(["a"])
