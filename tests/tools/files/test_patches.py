"""Both formats of patches are read, and what cannot be read is said with its line."""

import pytest

from hermes_agent.core.errors import BadArguments
from hermes_agent.tools.files.patches import FilePatch, Hunk, parse_patch

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
