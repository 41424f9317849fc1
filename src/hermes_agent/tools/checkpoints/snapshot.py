"""Incremental folder scan for checkpoints: finds changed files by their stat data and reads their content."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Sequence
from time import monotonic

import msgspec

from hermes_agent.tools.checkpoints.shadow import FILE, FOLDER, LINK, PROGRAM, Objects, tree
from hermes_agent.tools.files.finder import SKIPPED

LEFT_OUT = frozenset(
    map(
        os.fsencode,
        {*SKIPPED, "target", "dist", "build", ".next", ".gradle", ".mypy_cache", ".ruff_cache", ".pytest_cache"},
    )
)
"""Folders that are made again rather than kept; what is about to be changed in them is kept all the same."""
RULES = b".gitignore"
MOMENT = 0.2
"""Seconds."""
RECENT = 2_000_000_000
"""Nanoseconds in which a file may change again and look the same: file systems count in steps of up to two seconds."""

Stamp = tuple[int, ...]
"""By what a change of a file shows; empty where it would not."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A file in a folder scan; `blob` is its content's object name, empty if it was always too large."""

    mode: int
    blob: bytes
    stamp: Stamp


class Folder(msgspec.Struct, array_like=True):
    """The files of one scanned folder, by name. If not `entered`, only files about to be changed are known. `tree`
    is its tree object's name, empty if it has none."""

    files: dict[bytes, Entry]
    entered: bool = False
    tree: bytes = b""


class Seen(msgspec.Struct):
    """Cached result of the last scan, by relative path: folders, gitignore files and ignored paths."""

    folders: dict[bytes, Folder] = {}
    rules: dict[bytes, Stamp] = {}
    ignored: set[bytes] = set()


class Scan:
    """One scan of the folder `root` (a real path): of everything if `whole`, and of the `touched` files; of those alone
    if more than `most` files are new or changed. `now`: the file system's time in nanoseconds. Blocks.

    Call `go_on` until it is over, then `read` until it is done, each a short step so that a stop can come between;
    `keep` then writes the result.
    """

    def __init__(self, root: bytes, seen: Seen, *, whole: bool, touched: Sequence[bytes], now: int, most: int) -> None:
        self.seen = seen
        self.whole = whole
        self.absent: tuple[bytes, ...] = ()
        self._root = root.rstrip(b"/")
        self._touched = touched
        self._since = now - RECENT
        self._most = most
        self._fresh: dict[bytes, os.stat_result] = {}
        self._gone: set[bytes] = set()
        self._entered: set[bytes] = set()
        self._rules: dict[bytes, Stamp] = {}
        self._ignored: set[bytes] = set()
        self._dirty: set[bytes] = set()
        self._unjudged: dict[bytes, bool] = {}
        self._ahead = [(b"", False)] if whole else []
        self.changed = False
        """Whether anything is to be written or remembered; known when all is read."""

    @property
    def is_over(self) -> bool:
        """Whether the scan has finished."""
        return not self._ahead and not self._unjudged

    def go_on(self, ignored: Collection[bytes] | None = None, moment: float = MOMENT) -> list[bytes]:
        """Continue the scan; `ignored` are those of the names returned last that git ignores. Returns new names to
        check against git, once nothing else is left to do."""
        if ignored is not None:
            self._judge(ignored)
        until = monotonic() + moment
        while self._ahead and monotonic() < until:
            self._enter(*self._ahead.pop())
            if len(self._fresh) + len(self._gone) > self._most:
                self._give_up()
        if self.is_over:
            self._finish()
        return [] if self._ahead else list(self._unjudged)

    def _judge(self, ignored: Collection[bytes]) -> None:
        for path, is_folder in self._unjudged.items():
            if path in ignored:
                self._ignored.add(_judged(path, is_folder=is_folder))
            elif is_folder:
                self._ahead.append((path, True))
            else:
                self._alone(path)
        self._unjudged = {}

    def _give_up(self) -> None:
        self.whole, self._ahead = False, []
        for each in (self._fresh, self._gone, self._unjudged):
            each.clear()

    def _finish(self) -> None:
        """Check known files in folders that were not entered, and the touched files with whatever is in their place."""
        if self.whole:
            self._alone_below(self.seen.folders.keys() - self._entered)
        for path in self._touched:
            self._alone(path)
            for end in (at for at, sign in enumerate(path) if sign == ord("/")):
                if self._known(path[:end]) is not None:
                    self._alone(path[:end])
            if path in self.seen.folders:
                self._alone_below([each for each in self.seen.folders if (each + b"/").startswith(path + b"/")])
        self.absent = tuple(path for path in self._touched if not os.path.lexists(self._path(path)))
        before = (self.seen.rules, self.seen.ignored, self._once_entered())
        new = self.whole and before != (self._rules, self._ignored, self._entered)
        self.changed = bool(self._gone or new)

    def _alone_below(self, folders: Iterable[bytes]) -> None:
        for folder in folders:
            for name in self.seen.folders[folder].files:
                self._alone(_joined(folder, name))

    def _known(self, path: bytes) -> Entry | None:
        folder, _, name = path.rpartition(b"/")
        return self.seen.folders[folder].files.get(name) if folder in self.seen.folders else None

    def number(self) -> int:
        """Number of files to read."""
        return len(self._fresh)

    def read(self, objects: Objects, largest: int) -> bool:
        """Store the content of changed files. Returns whether there are more."""
        until = monotonic() + MOMENT
        while self._fresh and monotonic() < until:
            path, found = self._fresh.popitem()
            self._read(path, found, objects, largest)
        return bool(self._fresh)

    def keep(self, objects: Objects) -> bytes:
        """Update the cache, write changed trees, and return the root tree's name; idempotent."""
        for path in self._gone:
            self._forget(path)
        if self.whole:
            self.seen.rules, self.seen.ignored = self._rules, self._ignored
            for folder in self._entered:
                self._folder(folder).entered = True
            for folder in self._once_entered() - self._entered:
                self.seen.folders[folder].entered = False
        made = self._trees(objects)
        self._gone, self._dirty = set(), set()
        return made

    def _once_entered(self) -> set[bytes]:
        return {name for name, each in self.seen.folders.items() if each.entered}

    def _enter(self, folder: bytes, ruled: bool) -> None:
        try:
            with os.scandir(self._path(folder)) as listed:
                entries = {entry.name: entry for entry in listed}
        except OSError:
            return  # What is known of it is looked at alone.
        if folder and b".git" in entries:
            return  # A repository of its own.
        self._entered.add(folder)
        ruled = self._apply_rules(folder, entries.get(RULES)) or ruled
        known = self.seen.folders.get(folder)
        files = known.files if known else {}
        for name, entry in entries.items():
            before = files.get(name)
            if before is None:
                self._meet(_joined(folder, name), entry, ruled)
            elif _stamp(found := entry.stat(follow_symlinks=False)) != before.stamp:
                self._compare(_joined(folder, name), before, found)
                if entry.is_dir(follow_symlinks=False):
                    self._meet(_joined(folder, name), entry, ruled)
        self._gone.update(_joined(folder, name) for name in files.keys() - entries.keys())

    def _apply_rules(self, folder: bytes, rules: os.DirEntry[bytes] | None) -> bool:
        """Whether the folder has ignore rules; if they changed, their results are recomputed."""
        now = self._stamp(rules.stat(follow_symlinks=False)) if rules else None
        if now != self.seen.rules.get(folder) or now == ():
            below = folder + b"/" if folder else b""
            self.seen.ignored = {path for path in self.seen.ignored if not path.startswith(below)}
        if now is not None:
            self._rules[folder] = now
        return now is not None

    def _meet(self, path: bytes, entry: os.DirEntry[bytes], ruled: bool) -> None:
        """Enter a folder or check an unknown file, unless it is excluded."""
        is_folder = entry.is_dir(follow_symlinks=False)
        is_file = entry.is_symlink() or entry.is_file()
        if entry.name.lower() == b".git" or (is_folder and entry.name in LEFT_OUT) or not (is_folder or is_file):
            return
        known = self.seen.folders.get(path) if is_folder else None
        if (judged := _judged(path, is_folder=is_folder)) in self.seen.ignored:
            self._ignored.add(judged)
        elif ruled and not (known and known.entered):
            self._unjudged[path] = is_folder
        elif is_folder:
            self._ahead.append((path, ruled))
        else:
            self._alone(path)

    def _alone(self, path: bytes) -> None:
        """Check one file, known or not."""
        folder = path.rpartition(b"/")[0]
        here, before = self._path(folder), self._known(path)
        try:
            if folder not in self._entered and os.path.realpath(here) != here:
                raise NotADirectoryError
            self._compare(path, before, os.lstat(self._path(path)))
        except (FileNotFoundError, NotADirectoryError):
            if before is not None:
                self._gone.add(path)
        except OSError:
            return  # It stays as it is known.

    def _compare(self, path: bytes, before: Entry | None, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            if before is not None:
                self._gone.add(path)
        elif (before is None or _stamp(found) != before.stamp) and b".git" not in path.lower().split(b"/"):
            self._fresh[path] = found

    def _read(self, path: bytes, found: os.stat_result, objects: Objects, largest: int) -> None:
        """Store one file; too large or special files keep their known state."""
        folder, _, name = path.rpartition(b"/")
        before = self._known(path)
        try:
            content = _content(self._path(path), found, largest)
        except OSError:
            content = None  # It cannot be read, or is gone: the next look tells.
        if content is None:
            mode, blob = (before.mode, before.blob) if before else (FILE, b"")
        else:
            mode, blob = _mode(found), objects.write("blob", content)
        if before is None or (before.mode, before.blob) != (mode, blob):
            self._dirty.add(folder)
        entry = Entry(mode, blob, self._stamp(found))
        self.changed = self.changed or entry != before
        self._folder(folder).files[name] = entry

    def _forget(self, path: bytes) -> None:
        folder, _, name = path.rpartition(b"/")
        del self.seen.folders[folder].files[name]
        self._dirty.add(folder)

    def _folder(self, folder: bytes) -> Folder:
        """The cache entry of a folder, created with its parents."""
        for end in (*(at for at, sign in enumerate(folder) if sign == ord("/")), len(folder)):
            self.seen.folders.setdefault(folder[:end], Folder({}))
        return self.seen.folders[folder]

    def _trees(self, objects: Objects) -> bytes:
        """Rebuild the trees of changed folders and their parents."""
        folders = self.seen.folders
        folders.setdefault(b"", Folder({}))
        below: dict[bytes, dict[bytes, bytes]] = {}
        for path in sorted(folders, key=lambda path: path.count(b"/") + bool(path), reverse=True):
            each, inside = folders[path], below.get(path, {})
            parent, _, name = path.rpartition(b"/")
            if path in self._dirty or not path:
                before, each.tree = each.tree, _tree_of(each, inside, objects, is_root=not path)
                if each.tree != before:
                    self._dirty.add(parent)
            if each.tree:
                below.setdefault(parent, {})[name] = each.tree
            elif path and not each.entered:
                del folders[path]
        return folders[b""].tree

    def _path(self, path: bytes) -> bytes:
        return self._root + b"/" + path if path else self._root or b"/"

    def _stamp(self, found: os.stat_result) -> Stamp:
        """The stat stamp to cache; empty if the file may still change unnoticed."""
        return _stamp(found) if max(found.st_mtime_ns, found.st_ctime_ns) < self._since else ()


def _joined(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def _judged(path: bytes, *, is_folder: bool) -> bytes:
    """The cache key of an ignored path; distinguishes folders from files."""
    return path + b"/" if is_folder else path


def _stamp(found: os.stat_result) -> Stamp:
    return (found.st_ctime_ns, found.st_mtime_ns, found.st_size, found.st_ino)


def _mode(found: os.stat_result) -> int:
    if stat.S_ISLNK(found.st_mode):
        return LINK
    return PROGRAM if found.st_mode & stat.S_IXUSR else FILE


def _content(path: bytes, found: os.stat_result, largest: int) -> bytes | None:
    """A file's content or a link's target; None for what is not stored. Raises `OSError`."""
    if stat.S_ISLNK(found.st_mode):
        return os.readlink(path)  # noqa: PTH115 - names need not be text
    if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
        return None
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(largest)


def _tree_of(folder: Folder, inside: dict[bytes, bytes], objects: Objects, *, is_root: bool) -> bytes:
    rows = {name: (each.mode, each.blob) for name, each in folder.files.items() if each.blob}
    rows |= {name: (FOLDER, made) for name, made in inside.items()}
    if not rows and not is_root:
        return b""
    return objects.write("tree", tree((name, mode, blob) for name, (mode, blob) in rows.items()))
