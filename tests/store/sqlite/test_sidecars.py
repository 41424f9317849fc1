"""The files beside a database: who has it open, whose they are, where those of another go."""

import os
from pathlib import Path

import pytest

from hermes_agent.store.sqlite.opening import Sidecars, discard


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    path.write_bytes(b"\1" * 8192)
    return path


def frames(page: bytes, *, size: int = 4096, salt: int = 7) -> bytes:
    """A `-wal` with one frame, of page 2."""
    header = bytes(8) + size.to_bytes(4, "big") + bytes(4) + salt.to_bytes(4, "big") * 2 + bytes(8)
    frame = (2).to_bytes(4, "big") + (2).to_bytes(4, "big") + (7).to_bytes(4, "big") * 2 + bytes(8)
    return header + frame + page


def test_who_comes_second_is_not_alone_until_the_first_has_gone(path: Path):
    first = Sidecars(path)
    first.share()
    second = Sidecars(path)
    assert (first.alone, second.alone) == (True, False)

    first.close()
    second.share()
    assert not Sidecars(path).alone
    second.close()


@pytest.mark.parametrize(
    ("wal", "belongs"),
    [
        (frames(b"\2" * 4096), False),
        (frames(b"\1" * 4096), True),
        (frames(b"\1" * 4096, salt=8), False),
        (frames(b"\1" * 100), False),
        (b"torn", False),
        (b"", True),
    ],
)
def test_a_file_that_was_changed_and_holds_no_page_of_the_wal_is_another(path: Path, wal: bytes, belongs: bool):
    beside = path.with_name("x.db-wal")
    beside.write_bytes(wal)
    sidecars = Sidecars(path)
    sidecars.record()
    sidecars.close()
    os.utime(path, ns=(1, 1))

    assert Sidecars(path).belong() == belongs


@pytest.mark.parametrize("noted", ["", " " * 120, "x", "1 2 3", "\xff" * 300])
def test_a_note_that_says_nothing_sensible_is_no_reason_to_set_anything_aside(path: Path, noted: str):
    sidecars = Sidecars(path)
    sidecars.close()
    (path.parent / "locks/x.db.used").write_text(noted)
    path.with_name("x.db-wal").write_bytes(frames(b"\2" * 4096))
    os.utime(path, ns=(1, 1))

    assert Sidecars(path).belong()


def test_what_is_set_aside_never_takes_the_place_of_what_was_set_aside_before(path: Path):
    for number in (1, 2):
        path.with_name("x.db-wal").write_bytes(b"%d" % number)
        path.with_name("x.db-journal").write_bytes(b"j")
        assert Sidecars(path).set_aside() == path.with_name(f"x.db.left-{number}")

    assert path.with_name("x.db.left-1-wal").read_bytes() == b"1"
    assert path.with_name("x.db.left-2-journal").exists()
    assert Sidecars(path).set_aside() is None


def test_what_is_discarded_leaves_nothing_beside(path: Path):
    path.with_name("x.db-wal").touch()

    discard(path)

    assert [each.name for each in path.parent.iterdir()] == []
