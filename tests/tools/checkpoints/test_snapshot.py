"""A look sees what git sees, whatever was seen before."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import example, given, settings, strategies as st

from hermes_agent.tools.checkpoints.shadow import FOLDER, named, tree
from hermes_agent.tools.checkpoints.snapshot import LEFT_OUT, Scan, Seen

NAMES = ["a", "b.log", "c", "sub", "node_modules", "\xff", ".gitignore"]
RULES = ["*.log", "!b.log", "sub/", "/c", "c/a", "*", "", "**/sub/a"]
MOST = 1_000

paths = st.lists(st.sampled_from(NAMES[:-1]), min_size=1, max_size=3).map("/".join)
rules = st.lists(st.sampled_from(RULES), max_size=3).map("\n".join)


class InMemory:
    """Objects that are only named; see `Objects`."""

    def write(self, kind: str, content: bytes) -> bytes:
        return named(b"%s %d\0" % (kind.encode(), len(content)), content)


def write(root: Path, path: str, content: str) -> None:
    target = root / path
    if any(each.is_symlink() or each.is_file() for each in target.parents):
        return
    remove(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


def rule(root: Path, path: str, content: str) -> None:
    write(root, f"{path}/.gitignore" if len(content) % 2 else ".gitignore", content)


def remove(root: Path, path: str, _: str = "") -> None:
    target = root / path
    if any(each.is_symlink() for each in target.parents):
        return
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.is_dir():
        shutil.rmtree(target)


def link(root: Path, path: str, content: str) -> None:
    write(root, path, "x")
    if (root / path).is_file() and not (root / path).is_symlink():
        (root / path).unlink()
        (root / path).symlink_to(content or "a")


def program(root: Path, path: str, _: str) -> None:
    if (root / path).is_file() and not (root / path).is_symlink():
        (root / path).chmod(0o755)


def repository(root: Path, path: str, _: str) -> None:
    if is_kept(root, os.fsencode(path)) or any(each.is_symlink() or each.is_file() for each in (root / path).parents):
        return
    for name in ("objects", "refs"):
        (root / path / ".git" / name).mkdir(parents=True, exist_ok=True)
    (root / path / ".git/HEAD").write_text("ref: refs/heads/main\n")


Act = Callable[[Path, str, str], None]
acts = st.one_of(
    st.tuples(st.sampled_from([write, link]), paths, st.sampled_from(["one", "two", "six", "longer"])),
    st.tuples(st.sampled_from([remove, program, repository]), paths, st.just("")),
    st.tuples(st.just(rule), paths, rules),
)


def looked(root: Path, seen: Seen, touched: list[bytes] | None = None) -> tuple[dict[bytes, tuple[int, bytes]], bytes]:
    """Every file that is kept, and the tree."""
    look = Scan(os.fsencode(root), seen, whole=True, touched=touched or [], now=2**62, most=MOST)
    names = look.go_on()
    while not look.is_over:
        names = look.go_on(ignored(root, names) if names else None)
    made = kept(look)
    found = {
        (folder + b"/" if folder else b"") + name: (entry.mode, entry.blob)
        for folder, each in seen.folders.items()
        for name, entry in each.files.items()
    }
    return found, made


def kept(look: Scan) -> bytes:
    while look.read(InMemory(), MOST):
        pass
    return look.keep(InMemory())


def git(root: Path, *words: str, given: bytes = b"") -> bytes:
    environment = {
        "PATH": os.defpath,
        "HOME": "/nowhere",
        "GIT_DIR": f"{root}.git",
        "GIT_WORK_TREE": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return subprocess.run(["git", *words], cwd=root, input=given, capture_output=True, env=environment).stdout


def ignored(root: Path, names: list[bytes]) -> set[bytes]:
    out = git(
        root, "check-ignore", "--no-index", "-zv", "--stdin", given=b"".join(b"./" + name + b"\0" for name in names)
    )
    fields = out.split(b"\0")
    return {name[2:] for rule, name in zip(fields[2::4], fields[3::4], strict=False) if not rule.startswith(b"!")}


def listed(root: Path) -> set[bytes]:
    """What git would take in, but for the folders that are left out here."""
    found = git(root, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
    return {name for name in found if name and not name.endswith(b"/") and not LEFT_OUT & set(name.split(b"/")[:-1])}


@settings(max_examples=25)
@given(st.lists(st.lists(acts, max_size=6), min_size=1, max_size=5))
@example([[(write, "sub/a", "one")], [(rule, "a", "sub/"), (write, "sub/c", "one")], [(remove, "sub", "")]])
@example([[(repository, "sub", ""), (write, "sub/a", "one"), (write, "a", "two")]])
@example([[(write, "a/c/a", "one")], [(write, "a/c/a", "two")], [(remove, "a/c", ""), (write, "c", "one")]])
@example([[(write, "a", "one")], [(write, "a/c", "one")], [(write, "a", "two")]])
@example([[(repository, "sub", ""), (rule, "a", "sub/")], [(write, "sub", "one")]])
def test_files_are_those_of_git_and_those_that_were_kept_before(rounds):
    with tempfile.TemporaryDirectory() as folder:
        root, seen, before = Path(os.path.realpath(folder)) / "work", Seen(), set()
        root.mkdir()
        git(root, "init", "-q")
        for acted in rounds:
            for act, path, content in acted:
                act(root, path, content)

            found, made = looked(root, seen)

            there = {name for name in before if is_kept(root, name)}
            assert found.keys() == listed(root) | there
            assert all(found[name] == entry_of(root, name) for name in found)
            assert made == tree_of(found)
            assert looked(root, seen) == (found, made)
            before = set(found)


def tree_of(found: dict[bytes, tuple[int, bytes]]) -> bytes:
    """The name of the tree of these files."""
    below: dict[bytes, dict[bytes, tuple[int, bytes]]] = {}
    for path, entry in found.items():
        first, _, rest = path.partition(b"/")
        below.setdefault(first, {})[rest] = entry
    rows = [
        (name, *inside[b""]) if b"" in inside else (name, FOLDER, tree_of(inside)) for name, inside in below.items()
    ]
    return InMemory().write("tree", tree(rows))


def is_kept(root: Path, name: bytes) -> bool:
    """Whether a file is still there, and no link leads to it."""
    path = root / os.fsdecode(name)
    return (path.is_symlink() or path.is_file()) and not any(each.is_symlink() for each in path.parents)


def entry_of(root: Path, name: bytes) -> tuple[int, bytes]:
    path = root / os.fsdecode(name)
    content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    mode = 0o120000 if path.is_symlink() else 0o100755 if os.access(path, os.X_OK) else 0o100644
    return mode, hashlib.sha1(b"blob %d\0" % len(content) + content).digest()


def test_a_look_at_an_unchanged_folder_has_nothing_to_write(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    for name, content in {"a": "one", ".gitignore": "*.log\n", "x.log": "log", "large": "x" * (MOST + 1)}.items():
        (tmp_path / name).write_text(content)
    seen = Seen()
    git(tmp_path, "init", "-q")
    looked(tmp_path, seen)

    again = Scan(os.fsencode(tmp_path), seen, whole=True, touched=[], now=2**62, most=MOST)

    assert again.go_on() == []
    assert not again.changed


def test_more_changes_than_the_limit_leave_only_what_is_touched(tmp_path: Path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    seen = Seen()

    look = Scan(os.fsencode(tmp_path), seen, whole=True, touched=[b"b", b"new"], now=2**62, most=2)

    assert look.go_on() == []
    assert (look.whole, look.absent) == (False, (b"new",))
    kept(look)
    assert list(seen.folders[b""].files) == [b"b"]


def test_what_grows_too_large_stays_as_it_was(tmp_path: Path):
    (tmp_path / "a").write_text("one")
    seen = Seen()
    before = looked(tmp_path, seen)
    (tmp_path / "a").write_text("x" * (MOST + 1))
    (tmp_path / "b").write_text("x" * (MOST + 1))

    found, made = looked(tmp_path, seen)

    assert (found[b"a"], made) == (before[0][b"a"], before[1])


def test_a_file_of_a_moment_ago_is_read_again(tmp_path: Path):
    (tmp_path / "a").write_text("one")
    now = (tmp_path / "a").stat().st_mtime_ns
    seen = Seen()

    for when, times in ((now + 10**9, 1), (now + 3 * 10**9, 1), (now + 3 * 10**9, 0)):
        look = Scan(os.fsencode(tmp_path), seen, whole=True, touched=[], now=when, most=MOST)
        look.go_on()
        assert look.number() == times
        kept(look)
