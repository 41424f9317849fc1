"""Searches run in a process that can be ended; both engines find the same."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hermes_agent.core.errors import BadArguments, ToolError
from hermes_agent.host import process
from hermes_agent.tools.files import searching
from hermes_agent.tools.files.searching import Found, Hit, Query, listing, search
from tests.tools.bench import words

RIPGREP = shutil.which("rg") or ""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    texts = {
        "b.py": b"import os\nprint('find me')\n",
        "a/x.py": "käse find\r\n\r\nFIND\n".encode(),
        "a/latin.txt": b"k\xe4se find\n",
        "a.txt": b"no\nfind find\nno\nno\nfind\n",
        ".hidden": b"find",
        ".gitignore": b"b.py\n",
        "node_modules/m.js": b"find",
        "binary": b"find\0",
        "z/deep/f.py": b"x" * 3000 + b"find",
    }
    for name, content in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


async def test_what_is_found_comes_in_the_order_of_paths_and_lines(tree: Path) -> None:
    found = await search(Query(root=tree, pattern="find"))

    assert [(hit.path, hit.number) for hit in found.hits] == [
        (".hidden", 1),
        ("a/latin.txt", 1),
        ("a/x.py", 1),
        ("a.txt", 2),
        ("a.txt", 5),
        ("b.py", 2),
        ("z/deep/f.py", 1),
    ]
    assert not found.cut


@pytest.mark.skipif(not RIPGREP, reason="ripgrep is not installed")
@pytest.mark.parametrize("glob", ["", "{a,z}/**"])
@pytest.mark.parametrize("pattern", ["find", r"^find", r"\bfind$", "(?i)FIND", "nothing at all", r"käs. "])
async def test_both_engines_find_the_same(tree: Path, pattern: str, glob: str) -> None:
    query = Query(root=tree, pattern=pattern, glob=glob, context=1)

    assert await search(query, ripgrep=RIPGREP) == await search(query)


@pytest.mark.skipif(not RIPGREP, reason="ripgrep is not installed")
async def test_a_pattern_that_ripgrep_does_not_know_is_searched_all_the_same(tree: Path) -> None:
    found = await search(Query(root=tree, pattern=r"find(?= me)"), ripgrep=RIPGREP)

    assert [hit.path for hit in found.hits] == ["b.py"]


async def test_names_are_found_by_glob(tree: Path) -> None:
    found = await search(Query(root=tree, pattern="", glob="*.py"))

    assert [hit.path for hit in found.hits] == ["a/x.py", "b.py", "z/deep/f.py"]


async def test_a_pattern_that_is_no_expression_is_answered_with_the_reason(tree: Path) -> None:
    with pytest.raises(BadArguments, match=r"unterminated.*`\$.pattern`"):
        await search(Query(root=tree, pattern="(unfinished"))


async def test_a_pattern_that_never_ends_is_ended_and_the_program_goes_on(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 60 + "!")
    query = Query(root=tmp_path, pattern=r"(a+)+$")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        with pytest.raises(ToolError, match="took more than"):
            await search(query, seconds=0.3)
        ticking.cancel()

    assert ticks > 5


async def test_output_that_was_cut_off_in_mid_line_is_still_read(tree: Path) -> None:
    (tree / "many").write_text("find\n" * 1000)
    ended = await process.run(searching._own(Query(root=tree, pattern="find")), env={}, most=5000)

    hits = list(searching._of_finder(ended.out))

    assert ended.cut
    assert 10 < len(hits) < 1000


async def test_a_name_that_is_not_utf8_is_found(tmp_path: Path) -> None:
    (tmp_path / b"na\xffme".decode(errors="surrogateescape")).write_text("find")
    found = await search(Query(root=tmp_path, pattern=""))

    assert [hit.path.encode(errors="surrogateescape") for hit in found.hits] == [b"na\xffme"]


LETTERS = st.sampled_from(["a", "b", "A", "ä", "é", "字", "1", " ", ".", "-", "_", "\t", "\r", "\n", "\r\n"])
CONTENTS = st.one_of(
    st.lists(LETTERS, max_size=40).map(lambda parts: "".join(parts).encode()),
    st.sampled_from([b"", b"\n", b"a", b"a\0b\na\n", b"a\n" * 5000 + b"\0", b"\xef\xbb\xbfa", "a".encode("utf-16")]),
)
NAMES = [
    "a",
    "b.py",
    "a/a",
    "a/b.py",
    "a.b/c",
    ".git/x",
    ".h/b.py",
    "node_modules/b",
    "venv",
    "z/venv/a",
    "ä/字.py",
    "- a",
]
ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "A",
        "ä",
        *[r".", r"[[a]", r"(?i)a", r"x{,2}", r"(?=a)", r"[a&&b]", r"a{2}", r"a|"],
        "\n",
        r"\.",
        "[ab]",
        "[^a]",
        r"\d",
        r"\w",
        r"\s",
        r"\b",
        "^",
        "$",
        "(a|b)",
        "(?:ä)",
        " ",
        *[r"1", r"\A", r"\Z", r"(a)\1", r"\x61"],
    ]
)
PATTERNS = st.lists(st.tuples(ATOMS, st.sampled_from(["", "", "*", "+", "?"])), min_size=1, max_size=4).map(
    lambda parts: "".join(atom + more for atom, more in parts)
)


@pytest.mark.skipif(not RIPGREP, reason="ripgrep is not installed")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.dictionaries(st.sampled_from(NAMES), CONTENTS, min_size=1, max_size=6),
    pattern=PATTERNS,
    glob=st.sampled_from(["", "", "*.py", "a/**", "{a,b}*"]),
    context=st.integers(0, 2),
    root=st.sampled_from(["", "", "a", "b.py", "node_modules"]),
)
async def test_both_engines_find_the_same_in_any_tree(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, bytes], pattern: str, glob: str, context: int, root: str
) -> None:
    tree = tmp_path_factory.mktemp("tree")
    for name, content in data.items():
        try:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(content)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # a file stands where this one needs a folder
    query = Query(root=tree / root if (tree / root).exists() else tree, pattern=pattern, glob=glob, context=context)

    try:
        own = await search(query)
    except BadArguments:
        with pytest.raises(BadArguments):
            await search(query, ripgrep=RIPGREP)
        return
    assert await search(query, ripgrep=RIPGREP) == own


@pytest.mark.skipif(not RIPGREP, reason="ripgrep is not installed")
@pytest.mark.parametrize("pattern", [r"\Aa", "[[:alpha:]]", "a{,2}b", "[a&&b]"])
async def test_a_pattern_that_ripgrep_reads_otherwise_is_left_to_our_own_search(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a.txt").write_text("b\na\na{,2}b\n&]\n")
    query = Query(root=tmp_path, pattern=pattern)

    assert await search(query, ripgrep=RIPGREP) == await search(query)


HITS = (Hit(path="a", number=1, text="x"), Hit(path="a", number=4, text="x"), Hit(path="b/c", number=2, text="x"))


def shown(mode: str, offset: int = 0, limit: int = 50, *, path: str = ".", cut: bool = False) -> str:
    return words(listing(Found(hits=HITS, cut=cut), path, mode, offset=offset, limit=limit))


def test_lines_counts_and_names():
    assert shown("content") == "a:1: x\na:4: x\nb/c:2: x"
    assert shown("count") == "a: 2\nb/c: 1"
    assert shown("files") == "a\nb/c"
    assert shown("files", path="./src/") == "src/a\nsrc/b/c"


def test_a_page_says_how_to_go_on():
    assert shown("content", limit=2) == "a:1: x\na:4: x\n[3 results; go on with offset=2]"
    assert shown("content", offset=2) == "b/c:2: x"
    assert shown("content", offset=9) == "There are only 3 results."
    assert shown("files", cut=True).endswith("[more than 2 results; go on with offset=2]")
