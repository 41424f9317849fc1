"""What is deleted here because a command deleted it there, and nothing else; what is kept where something breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.sides import FETCH, MARKER, SCAN, SEND
from tests.sandbox.sync.local_shell import ENDED, Sides, files


async def test_a_file_deleted_on_one_side_and_changed_on_the_other_stays(alike: Sides) -> None:
    def act() -> None:
        (alike.here / "a.txt").unlink()
        (alike.there / "a.txt").write_text("theirs")
        (alike.here / "src/b.py").write_text("mine")
        (alike.there / "src/b.py").unlink()

    await alike.command(act)
    await alike.command()

    assert files(alike.here) == files(alike.there) == {"a.txt": "theirs", "src/b.py": "mine", "src/c d.py": "c"}


@pytest.mark.parametrize("files_there", [2, 30])
async def test_a_command_that_deleted_much_is_asked_about(sides: Sides, files_there: int) -> None:
    for number in range(files_there):
        (sides.here / f"{number}.txt").write_text(str(number))
    await sides.command()
    before = files(sides.here)

    (note,), deletion = await sides.command(lambda: [path.unlink() for path in sides.there.glob("*.txt")])

    assert note.startswith(f"Gone there and kept here ({files_there}): 0.txt, 1.txt")
    assert files(sides.here) == before
    assert deletion is not None
    assert set(deletion.paths) == set(before)
    (sides.here / "0.txt").write_text("changed since it was asked")
    assert await deletion.delete() == f"Deleted here too: {files_there - 1} of {files_there}."
    assert files(sides.here) == {"0.txt": "changed since it was asked"}
    assert await sides.command() == ((), None)
    assert files(sides.there) == files(sides.here)


async def test_what_nobody_says_to_delete_goes_there_again(alike: Sides) -> None:
    before = files(alike.here)
    await alike.command(lambda: [(alike.there / name).unlink() for name in before])
    await alike.command()

    assert files(alike.there) == files(alike.here) == before


async def test_what_commands_made_they_may_delete(alike: Sides) -> None:
    made = [alike.there / f"{number}.o" for number in range(40)]
    await alike.command(lambda: [path.write_text("o") for path in made])
    assert len(files(alike.here)) == 43

    assert await alike.command(lambda: [path.unlink() for path in made]) == ((), None)
    assert len(files(alike.here)) == 3


async def test_what_a_command_made_and_somebody_else_deleted_is_not_made_again(alike: Sides) -> None:
    await alike.command(lambda: (alike.there / "server.pid").write_text("1"))
    (alike.there / "server.pid").unlink()

    assert await alike.command() == ((), None)
    assert "server.pid" not in files(alike.there)
    assert "server.pid" in files(alike.here)


@pytest.mark.parametrize("swap", ["gone", "empty", "a copy", "another"])
@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_folder_that_is_not_the_same_deletes_nothing(alike: Sides, swap: str, when: str) -> None:
    before = files(alike.here)

    def act() -> None:
        alike.there.rename(alike.there.with_name("moved"))
        if swap != "gone":
            alike.there.mkdir()
        if swap == "a copy":
            (alike.there / MARKER).write_text((alike.there.with_name("moved") / MARKER).read_text())
        if swap == "another":
            (alike.there / MARKER).write_text("another")

    if when == "before":
        act()
    notes, deletion = await alike.command(act if when == "during" else lambda: None)

    assert files(alike.here) == before
    assert deletion is None
    if when == "during":
        assert notes == (
            f"{alike.there} there is gone, or another one than before the command: nothing was taken over from it, "
            "all files here were left alone.",
        )
    assert await alike.command() == ((), None)
    assert files(alike.there) == before


async def test_a_folder_that_cannot_be_read_whole_deletes_nothing(alike: Sides) -> None:
    before = files(alike.here)
    alike.shell.after = lambda script, out: out.rpartition(b"\0")[0] + b"\0001" if script == SCAN else out
    (note,), _ = await alike.command(lambda: (alike.there / "src/b.py").unlink())

    assert note == "Not everything there could be read: what is missing there was not deleted here."
    assert files(alike.here) == before


async def test_files_that_were_replaced_by_a_link_are_not_deleted(alike: Sides) -> None:
    before = files(alike.here)

    def act() -> None:
        (alike.there / "src").rename(alike.there.with_name("disk"))
        (alike.there / "src").symlink_to(alike.there.with_name("disk"))

    await alike.command(act)
    (alike.here / "src/b.py").write_text("B")
    (note,), _ = await alike.command()

    assert note == "Not copied there, something else is in the way: src/b.py."
    assert files(alike.here) == before | {"src/b.py": "B"}
    assert (alike.there / "src/b.py").read_text() == "b"


async def test_another_process_knows_what_was_alike(alike: Sides) -> None:
    await alike.sync.up("g/x")
    (alike.there / "a.txt").unlink()
    await alike.again().down("g/x", ENDED)

    assert "a.txt" not in files(alike.here)
    assert await alike.again().down("g/x", ENDED) == ((), None)


async def test_the_end_that_nobody_saw_deletes_nothing_and_brings_what_it_wrote(alike: Sides) -> None:
    await alike.sync.up("g/x")
    (alike.there / "a.txt").unlink()
    (alike.there / "new").write_text("n")
    await alike.command()
    assert (files(alike.here)["a.txt"], files(alike.here)["new"]) == ("a", "n")

    await alike.command(lambda: (alike.there / "a.txt").unlink(), replace(ENDED, code=None))
    assert files(alike.here)["a.txt"] == "a"


async def test_a_state_that_cannot_be_read_loses_nothing(alike: Sides) -> None:
    before = files(alike.here)
    alike.state.write_text("{")
    (alike.there / "a.txt").write_text("theirs")
    (alike.there / "src/b.py").unlink()

    alike.again()
    await alike.command()

    assert files(alike.here) == before | {".theirs/a.txt": "theirs"}


async def test_a_way_that_breaks_while_sending_is_gone_on_with(alike: Sides) -> None:
    (alike.here / "a.txt").write_text("A longer text")
    alike.shell.breaks = SEND
    with pytest.raises(PlaceFailed, match="broke"):
        await alike.sync.up("g/x")
    (alike.there / "a.txt").write_text("A lon")  # half of it had arrived
    alike.shell.breaks = ""
    alike.again()

    assert await alike.command() == ((), None)
    assert files(alike.there)["a.txt"] == files(alike.here)["a.txt"] == "A longer text"


async def test_half_of_a_file_that_was_sent_never_comes_back(alike: Sides) -> None:
    await alike.sync.up("g/x")
    (alike.here / "a.txt").write_text("A longer text")
    alike.shell.breaks = SEND
    with pytest.raises(PlaceFailed, match="broke"):
        await alike.sync.up("g/y")
    (alike.there / "a.txt").write_text("A lon")
    (alike.here / "a.txt").unlink()
    alike.shell.breaks = ""

    await alike.sync.up("g/y")
    assert "a.txt" not in files(alike.here)


async def test_a_file_that_did_not_arrive_is_not_taken_for_deleted(alike: Sides) -> None:
    """Another program has moved it since, or it cannot be read."""
    before = files(alike.here)
    alike.shell.before = lambda script: script == FETCH and (alike.there / "a.txt").unlink()
    (note,), deletion = await alike.command(lambda: (alike.there / "a.txt").write_text("theirs"))

    assert note == "Not copied here, a link, the disk or a change of just now is in the way: a.txt."
    assert deletion is None
    assert files(alike.here) == before


async def test_a_file_in_the_place_of_a_folder_and_the_other_way_round_stop_no_command(alike: Sides) -> None:
    def act() -> None:
        (alike.there / "src/b.py").unlink()
        (alike.there / "src/c d.py").unlink()
        (alike.there / "src").rmdir()
        (alike.there / "src").write_text("a file now")
        (alike.there / "a.txt").unlink()
        (alike.there / "a.txt").mkdir()
        (alike.there / "a.txt/b").write_text("in a folder now")

    before = files(alike.here)
    await alike.command(act)
    (alike.here / "a.txt").write_text("A")
    (alike.here / "src/b.py").write_text("B")
    notes, _ = await alike.command()

    assert "Not copied there, something else is in the way: a.txt, src/b.py." in notes
    assert files(alike.here) == before | {".theirs/src": "a file now", "a.txt": "A", "src/b.py": "B"}
