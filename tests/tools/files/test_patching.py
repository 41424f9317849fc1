"""A patch of several files: all of it or nothing, the same after a crash."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.errors import BadArguments, Refused, StaleWrite, ToolError
from hermes_agent.tools.files.patching import FilePatch, Hunk, apply_hunks, parse_patch
from tests.tools.bench import Bench, words

BEGIN = """*** Begin Patch
*** Add File: new.txt
+one
+
+two
*** Update File: old.py
*** Move to: src/old.py
@@ def f():
 a
-b
+c
*** Delete File: gone.txt
*** End Patch
"""

UNIFIED = """diff --git a/x.py b/x.py
index 1..2 100644
--- a/x.py
+++ b/x.py
@@ -3,2 +3,2 @@ def f():
 a
-b
+c
\\ No newline at end of file
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+one
--- a/gone.txt\t2026-01-01
+++ /dev/null
@@ -1 +0,0 @@
-bye
"""


def test_the_begin_patch_format_is_read():
    add, update, delete = parse_patch(BEGIN)

    assert add == FilePatch(kind="add", path="new.txt", content="one\n\ntwo\n")
    hunk = Hunk(rows=((" ", "a"), ("-", "b"), ("+", "c")), anchor="def f():")
    assert update == FilePatch(kind="update", path="old.py", moved="src/old.py", hunks=(hunk,))
    assert delete == FilePatch(kind="delete", path="gone.txt")
    assert update.paths == ("old.py", "src/old.py")


def test_unified_diffs_are_read():
    update, add, delete = parse_patch(UNIFIED)

    assert update.hunks == (Hunk(rows=((" ", "a"), ("-", "b"), ("+", "c")), line=3),)
    assert (add.kind, add.path, add.content) == ("add", "new.txt", "one\n")
    assert (delete.kind, delete.path) == ("delete", "gone.txt")


def test_line_ends_of_the_patch_itself_do_not_matter():
    assert parse_patch(BEGIN.replace("\n", "\r\n")) == parse_patch(BEGIN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "line 1 .* it names no file"),
        ("*** Begin Patch\nnonsense\n*** Update File: a\n@@\n-x\n", "line 2 .* expected"),
        ("*** Begin Patch\n*** Add File: a\nno plus\n", "line 3 .* begins with `\\+`"),
        ("*** Begin Patch\n*** Update File: a\n@@\nno sign\n", "line 4 .* a line of a begins with"),
        ("*** Begin Patch\n*** Delete File: a\n*** Delete File: a\n", "names a twice"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n?x\n", "line 4 "),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, words: str):
    with pytest.raises(BadArguments, match=words):
        parse_patch(text)


LINES = st.lists(st.sampled_from(["", "a", "b", "  c", "d e", "\tf"]), max_size=30)


def hunk(*rows: str, **more: object) -> Hunk:
    return Hunk(rows=tuple((row[0], row[1:]) for row in rows), **more)


@given(LINES, LINES)
def test_any_diff_makes_the_new_text_of_the_old(old: list[str], new: list[str]):
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    diff = "\n".join(difflib.unified_diff(old, new, "a/x", "b/x", lineterm=""))
    if old and new and diff:
        assert apply_hunks(before, parse_patch(diff)[0].hunks, "x") == (after, "")


def test_lines_that_stay_keep_the_files_own_spaces_and_new_ones_are_indented_like_them():
    done, note = apply_hunks("class A:\n    x = 1   \n    y = 2\n", [hunk(" x = 1", "-y = 2", "+y = 3", "+z = 4")], "a")

    assert done == "class A:\n    x = 1   \n    y = 3\n    z = 4\n"
    assert note == "indentation overlooked"


def test_typographic_quotes_are_overlooked():
    assert apply_hunks("say \u201chi\u201d\n", [hunk('-say "hi"', "+bye")], "a")[0] == "bye\n"


def test_lines_that_stand_twice_are_refused_unless_the_place_is_told():
    text = "def a():\n    pass\ndef b():\n    pass\n"
    change = ("-    pass", "+    return")

    with pytest.raises(ToolError, match=r"at 2 places .lines 2, 4."):
        apply_hunks(text, [hunk(*change)], "a")
    assert apply_hunks(text, [hunk(*change, anchor="def b():")], "a")[0] == "def a():\n    pass\ndef b():\n    return\n"
    assert apply_hunks(text, [hunk(*change, line=4)], "a")[0].endswith("def b():\n    return\n")


def test_lines_are_added_after_their_anchor_or_at_the_end():
    assert apply_hunks("a\nb\n", [hunk("+x", anchor="a")], "f")[0] == "a\nx\nb\n"
    assert apply_hunks("a\nb\n", [hunk("+x")], "f")[0] == "a\nb\nx\n"


@pytest.mark.parametrize("wrong", [hunk("-nope", "+x"), hunk("+x", anchor="nope")])
def test_what_is_not_there_is_said(wrong: Hunk):
    with pytest.raises(ToolError, match=r"nope.* not found|not found: `nope`"):
        apply_hunks("a\n", [wrong], "f")


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


async def test_no_path_of_a_patch_leads_where_none_may(files: Bench, tree: Path) -> None:
    with pytest.raises(Refused):
        await files("patch", patch=PATCH.replace("moved/c.txt", "../closed/c.txt"))

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
