"""Files that a person attaches to a message in the chat: `@path` words, pasted paths, the picture in the clipboard."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hermes_agent.app.intake import Intake, Part, Taken, named, spool
from hermes_agent.cli.picker_choices import Choice
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.late import late
from hermes_agent.host.process import run
from hermes_agent.tools.files.content import image_type
from hermes_agent.tools.files.documents import DOCUMENTS, Damaged
from hermes_agent.tools.files.finder import walk

AT_FILE = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')
TRAILING = ".,;:!?)"
DOCUMENT_BYTES = 20 << 20
MOST_ATTACHED = 20
MOST_FILES = 20_000
WALK_SECONDS = 1.0
FRESH_SECONDS = 10.0
CLIPBOARD = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
"""Programs that print the picture in the clipboard."""
LARGEST_PICTURE = 50 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A file that a message names with `@`: the name as it was written, and the file."""

    name: str
    path: Path


def attached_in(text: str, folder: str) -> list[Attached]:
    """The files that a message names, each once; words that name no file stay words. Blocks."""
    found: dict[Path, Attached] = {}
    for match in AT_FILE.finditer(text):
        for name in dict.fromkeys((match[1] or match[2], (match[1] or match[2]).rstrip(TRAILING))):
            path = Path(folder, Path(name).expanduser())
            if _is_file(path):
                found.setdefault(path, Attached(name=name, path=path))
                break
    return list(found.values())


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # Too long for a name, or no name at all.
        return False


async def take(intake: Intake, files: Sequence[Attached], window: int) -> Taken:
    """The contents of these files as message parts: text, the text of documents, pictures; what is too large, as the
    place where it lies. Raises `HermesError` for one that cannot be read."""
    if len(files) > MOST_ATTACHED:
        raise HermesError(f"The message names {len(files)} files with @; {MOST_ATTACHED} can be attached at once.")
    taken = [await asyncio.to_thread(_taken, intake, file, window) for file in files]
    parts: list[Part] = [part for each in taken for part in each.parts]
    return Taken(parts=tuple(parts), notice=" ".join(each.notice for each in taken if each.notice))


def _taken(intake: Intake, file: Attached, window: int) -> Taken:
    spooled = named(file.path)
    reader = DOCUMENTS.get(file.path.suffix.lower(), "")
    if reader and spooled.size <= DOCUMENT_BYTES:
        try:
            lines: list[str] = late(reader)(file.path.read_bytes())
        except (Damaged, OSError) as error:
            raise HermesError(f"{file.name} cannot be read: {str(error).rstrip('.')}.") from error
        words = "\n".join(lines)
        return Taken(parts=(Text(text=f"\n\n{file.name}:\n{words}\n", origin=Origin.FILE),))
    taken = intake.of_file(spooled, Origin.FILE, window, name=file.name)
    apart = (Text(text="\n\n", origin=Origin.FILE),) if any(isinstance(part, Text) for part in taken.parts) else ()
    return Taken(parts=(*apart, *taken.parts), notice=taken.notice)


class FileIndex:
    """The files below the working folder, for completion; read again after some seconds. Blocks."""

    def __init__(self, folder: Callable[[], str]) -> None:
        self._folder = folder
        self._read = ("", 0.0)
        self._names: list[str] = []

    @property
    def folder(self) -> str:
        """The working folder."""
        return self._folder()

    def names(self) -> list[str]:
        """Paths relative to the folder, at most 20,000 and those that were found within a second."""
        folder, now = self._folder(), time.monotonic()
        if self._read[0] != folder or now - self._read[1] > FRESH_SECONDS:
            self._names = []
            for name in walk(folder):
                if name.isprintable():
                    self._names.append(name)
                if len(self._names) >= MOST_FILES or time.monotonic() - now > WALK_SECONDS:
                    break
            self._read = (folder, time.monotonic())
        return self._names


def file_choices(files: FileIndex, begun: str) -> list[Choice]:
    """What an `@` may name: the entries of the folder that is typed (`begun`; hidden ones behind a dot), then files
    anywhere below the working folder. Blocks."""
    head, hidden = (begun[:-1], True) if begun.endswith(".") and not begun.endswith("..") else (begun, False)
    found = {f"{head}{name}": "" for name in _entries(Path(files.folder, Path(head).expanduser()), hidden=hidden)}
    if not head.startswith(("/", "~", ".")):
        found |= {name: "" for name in files.names() if not any(part.startswith(".") for part in name.split("/"))}
    return [Choice(name=name, line=f"@{name}" if name.endswith("/") else f"{at(name)} ", sends=False) for name in found]


def _entries(folder: Path, *, hidden: bool) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(".") == hidden)
    except OSError:
        return []
    return [f"{name}/" if is_folder else name for name, is_folder in found[:MOST_FILES] if name.isprintable()]


def pasted_files(pasted: str) -> str:
    """A paste that is nothing but paths of existing files (a terminal's way of dropping them) as `@path` words; empty
    for any other. Blocks."""
    text = pasted.strip()
    if not text or "\n" in text or len(text) > 4_000 or not text.startswith(("/", "~", "'/", '"/', "file://")):
        return ""
    try:
        words = shlex.split(text)
    except ValueError:
        return ""
    paths = [unquote(urlsplit(word).path) if word.startswith("file://") else word for word in words]
    if not paths or not all(_is_file(Path(path).expanduser()) for path in paths):
        return ""
    return " ".join(at(path) for path in paths) + " "


def at(path: str) -> str:
    """The word that attaches this file."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


async def clipboard_picture(folder: Path, environment: Mapping[str, str]) -> str:
    """The word that attaches the picture in the clipboard, saved in `folder`. Raises `HermesError` if there is none, or
    no program here can read it."""
    seen = False
    for argv in CLIPBOARD:
        try:
            found = await run(argv, env=environment, seconds=5.0, most=LARGEST_PICTURE)
        except (OSError, TimeoutError):
            continue
        seen = True
        if found.code == 0 and image_type(found.out):
            return at(str((await asyncio.to_thread(spool, folder, (found.out,), ".png")).path))
    if seen:
        raise HermesError("There is no picture in the clipboard.")
    raise HermesError("Nothing here reads pictures from the clipboard: install wl-clipboard, xclip or pngpaste.")
