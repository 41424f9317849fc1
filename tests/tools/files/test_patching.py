"""A patch of several files: all of it or nothing, the same after a crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.core.errors import BadArguments, Refused, StaleWrite, ToolError
from tests.tools.bench import Bench, words

PATCH = """*** Begin Patch
*** Add File: new/a.txt
+one
*** Update File: b.py
@@
-x = 1
+x = 2
*** Update File: c.txt
*** Move to: moved/c.txt
@@
-sea
+see
*** Delete File: d.txt
*** End Patch
"""


@pytest.fixture
def tree(workspace: Path) -> Path:
    (workspace / "b.py").write_text("x = 1\n")
    (workspace / "c.txt").write_text("sea\n")
    (workspace / "d.txt").write_text("bye\n")
    return workspace


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


DONE = {"new/a.txt": "one\n", "b.py": "x = 2\n", "moved/c.txt": "see\n"}


async def test_files_are_added_changed_moved_and_removed_at_once(files: Bench, tree: Path) -> None:
    answer = await files("patch", patch=PATCH)

    assert contents(tree) == DONE
    assert [line for line in answer.splitlines() if line[:1].isupper()] == [
        "Created new/a.txt, 1 lines.",
        "Patched b.py.",
        "Moved c.txt to moved/c.txt.",
        "Removed d.txt.",
    ]
    assert "-x = 1\n+x = 2" in answer


async def test_where_one_change_does_not_fit_none_is_made(files: Bench, tree: Path) -> None:
    before = contents(tree)

    with pytest.raises(ToolError, match=r"d2.txt does not exist"):
        await files("patch", patch=PATCH.replace("d.txt", "d2.txt"))

    assert contents(tree) == before


async def test_what_was_written_is_put_back_where_a_later_file_cannot_be(files: Bench, tree: Path) -> None:
    before = contents(tree)
    adds = "*** Add File: p\n+x\n*** Add File: p/q\n+x\n*** Delete File: d.txt\n"

    with pytest.raises(ToolError, match="other files are as they were"):
        await files("patch", patch=PATCH.replace("*** Delete File: d.txt\n", adds))

    assert contents(tree) == before


async def test_a_patch_that_a_crash_cut_short_is_finished_and_answered_the_same(
    make_files: Callable[..., Bench], tree: Path
) -> None:
    whole = words(await make_files().answer("patch", {"patch": PATCH}, call="c1"))
    (tree / "c.txt").write_text("sea\n")  # as if it had died before what is removed last
    (tree / "d.txt").write_text("bye\n")

    again = words(await make_files().answer("patch", {"patch": PATCH}, call="c1", attach=True))

    assert again == whole
    assert contents(tree) == DONE


async def test_a_file_that_changed_since_it_was_read_is_left_alone(files: Bench, tree: Path) -> None:
    await files("read_file", path="b.py")
    (tree / "b.py").write_text("x = 1\nmine = True\n")

    with pytest.raises(StaleWrite, match=r"b.py changed since"):
        await files("patch", patch=PATCH)

    assert not (tree / "new").exists()


async def test_no_path_of_a_patch_leads_where_none_may(make_files: Callable[..., Bench], tree: Path) -> None:
    with pytest.raises(Refused):
        await make_files(confined=True)("patch", patch=PATCH.replace("moved/c.txt", "../c.txt"))

    assert "sea\n" in contents(tree).values()


async def test_an_added_file_replaces_none(files: Bench, tree: Path) -> None:
    with pytest.raises(ToolError, match=r"b.py exists already"):
        await files("patch", patch="*** Begin Patch\n*** Add File: b.py\n+x\n*** End Patch")


def test_a_call_says_every_path_that_it_touches(files: Bench, tree: Path) -> None:
    paths = files.tools["patch"].facts({"patch": PATCH}, str(tree)).paths

    assert paths == tuple(str(tree / name) for name in ("new/a.txt", "b.py", "c.txt", "moved/c.txt", "d.txt"))


@pytest.mark.parametrize("arguments", [{}, {"path": "b.py", "patch": PATCH}, {"patch": "garbage"}])
def test_a_call_without_one_clear_wish_is_told_what_to_give(files: Bench, arguments: dict[str, str]) -> None:
    with pytest.raises(BadArguments, match=r"patch: "):
        files.tools["patch"].facts(arguments, "/")


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be", "utf-8"])
async def test_a_file_keeps_its_coding_and_mark(files: Bench, workspace: Path, coding: str) -> None:
    (workspace / "a.txt").write_bytes("\ufeffgrün\r\nrot\r\n".encode(coding))

    assert "1|grün\n2|rot\n[UTF-" in await files("read_file", path="a.txt")
    await files("patch", path="a.txt", old_string="grün\nrot", new_string="blau\ngrau")
    assert (workspace / "a.txt").read_bytes() == "\ufeffblau\r\ngrau\r\n".encode(coding)
    await files("write_file", path="a.txt", content="neu")
    assert (workspace / "a.txt").read_bytes() == "\ufeffneu".encode(coding)


async def test_an_error_that_a_change_brings_is_told(files: Bench, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = [1]\n")

    answer = await files("patch", path="a.py", old_string="[1]", new_string="[1")

    assert "Patched a.py. The file has a syntax error now: line 1: '[' was never closed." in answer
