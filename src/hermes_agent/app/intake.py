"""Large input: saves text and files that are too big for the model's window to disk, and gives the model a placeholder
with the path, for text also head and tail."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from hermes_agent.core.chat import Inbound, Standing, own_name, workspace_of
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, HomeError, InputTooLarge, StoreError
from hermes_agent.core.messages import KEPT_WHOLE, File, Image, Origin, Text
from hermes_agent.core.section import BYTES_PER_TOKEN
from hermes_agent.host.paths import PRIVATE_FILE, PRIVATE_FOLDER, Home, reason, way_out
from hermes_agent.store.database import Store
from hermes_agent.tools.files.content import SNIFFED, binary_kind, image_type as image_type, plain_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """A saved file with large input; `size` in bytes, `lines` counts newlines."""

    path: Path
    size: int
    lines: int


def spool(folder: Path, chunks: Iterable[bytes], ending: str = ".txt") -> Spooled:
    """Write the chunks to a private file in this folder, named by content hash, so equal content gives one file.
    Leaves no partial file. Raises `HomeError`."""
    size, lines, digest = 0, 0, hashlib.sha256()
    temporary = folder / f".{os.urandom(8).hex()}.new"
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                size, lines = size + len(chunk), lines + chunk.count(b"\n")
            file.flush()
            os.fsync(file.fileno())
        path = folder / f"{digest.hexdigest()[:20]}{ending}"
        temporary.replace(path)
    except OSError as error:
        raise HomeError(f"{folder} cannot be written ({reason(error)}): {way_out(error, folder)}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return Spooled(path=path, size=size, lines=lines)


def named(path: Path) -> Spooled:
    """An existing file as `Spooled`. Raises `HermesError` if it cannot be read."""
    lines, real = 0, path.expanduser().absolute()
    try:
        if not real.is_file():
            raise HermesError(f"{path} is {'not a file' if real.exists() else 'not there'}.")
        with real.open("rb") as file:
            while chunk := file.read(1 << 20):
                lines += chunk.count(b"\n")
            return Spooled(path=real, size=file.tell(), lines=lines)
    except OSError as error:
        raise HermesError(f"{path} cannot be read ({reason(error)}).") from error


SHARE = 0.25
"""Of the window, what one message may take. More would be the first thing that a compaction drops."""
LEAST = 8_000
"""Bytes that are shown whole, however small the window is."""
MOST_SHOWN = 20_000
"""Bytes of the beginning and the end that are shown of a text."""
LARGEST_PICTURE = 5_000_000
"""Bytes of a picture that providers take."""
ENDING = r"\.\w{1,10}$"
HOW = (
    "Before you say anything about what is not shown here, read it there with your tools (`read_file` with `offset` "
    "and `limit`, `search_files`, the terminal); without such tools, say that you have not seen it."
)
Part = Text | Image | File


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A message's parts, large ones replaced by placeholders; a notice for the person if any was saved."""

    parts: tuple[Part, ...]
    notice: str = ""


class Intake:
    """Fits messages into a model's window: saves large parts in `folder`, or refuses a message that is too large if
    `strict`. `window` gives a model's window in tokens, by name (empty: the configured one)."""

    def __init__(self, folder: Path, window: Callable[[str], Awaitable[int]], *, strict: bool = False) -> None:
        self.folder = folder
        self.window = window
        self._strict = strict

    async def fit(self, inbound: Inbound, model: str) -> Inbound:
        """The message as this model gets it. Raises `InputTooLarge`, and `StoreError` if nothing can be saved."""
        own = own_name(workspace_of("", inbound.principal, inbound.conversation))
        taken = await asyncio.to_thread(self.fitted, inbound.parts, await self.window(model), own)
        if not taken.notice:
            return inbound
        # Where files of this machine lie is for its owner alone.
        is_owner = inbound.principal.standing is Standing.OWNER
        notice = taken.notice if is_owner else f"{taken.notice.partition(': `')[0]}."
        return replace(inbound, parts=taken.parts, notice="\n".join(filter(None, (inbound.notice, notice))))

    def fitted(self, parts: Sequence[Part], window: int, own: str = "") -> Taken:
        """Save the largest parts as files, in the folder `own`, until the rest fits its share of the window."""
        most, left = limit(window), total(parts)
        found: list[tuple[Part, ...]] = [(part,) for part in parts]
        notices = []
        for place, part in sorted(enumerate(parts), key=lambda each: -_bytes(each[1])):
            if left > most or (isinstance(part, Image) and _bytes(part) > LARGEST_PICTURE):
                self.check(left, window)
                left -= _bytes(part)
                taken = standing_for(self.keep(part, own), part.origin, window)
                found[place] = taken.parts
                notices.append(taken.notice)
        return Taken(parts=tuple(part for each in found for part in each), notice=" ".join(notices))

    def keep(self, part: Part, own: str = "") -> Spooled:
        """Save the part as a file, in the folder `own`. Raises `StoreError`."""
        content = part.text.encode("utf-8", "replace") if isinstance(part, Text) else base64.b64decode(part.data)
        ending = re.search(ENDING, part.name) if isinstance(part, File) else None
        try:
            return spool(self.folder / own, (content,), ending[0] if ending else ".txt")
        except HomeError as error:
            raise StoreError(str(error)) from error

    async def kept(self, own: str, text: str) -> str:
        """Save a text and return the file's path. Raises `StoreError`."""
        return str((await asyncio.to_thread(self.keep, Text(text=text), own)).path)

    def of_file(self, file: Spooled, origin: Origin, window: int, *, name: str = "") -> Taken:
        """A file as message parts: a picture, its text if short enough, else a placeholder with head and tail.
        Raises `HermesError` if it cannot be read."""
        try:
            with file.path.open("rb") as opened:
                head = opened.read(SNIFFED)
                picture, what = image_type(head), binary_kind(head)
                fits = file.size <= (LARGEST_PICTURE if picture else limit(window))
                content = head + opened.read() if fits and (picture or not what) else b""
        except OSError as error:
            raise HermesError(f"{file.path} cannot be read: {error.strerror}.") from error
        if picture and fits:
            return Taken(parts=(Image(media_type=picture, data=base64.b64encode(content).decode(), origin=origin),))
        if fits and not what:
            title = f"{name}:\n" if name else ""
            return Taken(parts=(Text(text=f"{title}{plain_text(content)}", origin=origin),))
        if not what:
            self.check(file.size, window)
        return standing_for(file, origin, window)

    def check(self, size: int, window: int) -> None:
        """Raise `InputTooLarge` if input of this size is refused (`strict`)."""
        if self._strict and size > limit(window):
            raise InputTooLarge(
                f"The input has {size:,} bytes, and one message to this model may have {limit(window):,}. Without "
                "`--strict-input` Hermes saves it as a file for the model."
            )


def limit(window: int) -> int:
    """Most bytes of a message shown whole to a model with this window (tokens)."""
    return max(LEAST, round(window * SHARE) * BYTES_PER_TOKEN)


def is_small(parts: Sequence[Part]) -> bool:
    """Whether a message fits into any window, so that no check is needed."""
    return sum(map(_bytes, parts)) <= LEAST


def total(parts: Iterable[Part]) -> int:
    """Bytes of a message that count against the window; pictures do not count."""
    return sum(_bytes(part) for part in parts if not isinstance(part, Image))


def standing_for(file: Spooled, origin: Origin, window: int) -> Taken:
    """The placeholder for a file too large to include: what it is, its path, head and tail."""
    with file.path.open("rb") as opened:
        head = opened.read(SNIFFED)
        what = image_type(head) or binary_kind(head)
        side = min(MOST_SHOWN, limit(window) // 2) // 2
        opened.seek(0)
        first = opened.read(side)
        opened.seek(max(side, file.size - side))
        last = opened.read(side)
    size = f"{what}, {file.size:,} bytes" if what else f"{file.size:,} bytes, {file.lines:,} line ends"
    whole = f"{KEPT_WHOLE} `{file.path}`"
    note = Text(text=f"\n({size}, {whole}. {HOW})\n", origin=Origin.RUNTIME)
    if what:
        return Taken(
            parts=(note,), notice=f"A part of your message ({size}) is not text, and kept as a file: `{file.path}`."
        )
    left_out = f"[... {file.size - len(first) - len(last):,} bytes are not shown; all of it is {whole} ...]"
    text = f"{first.decode('utf-8', 'ignore')}\n{left_out}\n{last.decode('utf-8', 'ignore')}"
    notice = (
        f"Your message ({size}) is too large for the model's window ({window:,} tokens). The model gets its beginning "
        f"and end, and reads the rest from a file: `{file.path}`."
    )
    return Taken(parts=(Text(text=text, origin=origin), note), notice=notice)


def _bytes(part: Part) -> int:
    return len(part.text.encode("utf-8", "replace")) if isinstance(part, Text) else len(part.data) * 3 // 4


FOLDERS = ("cache/input/", "cache/results/")
FILE = r"cache/(?:input|results)/(?:[0-9a-f]{16}/)?[0-9a-f]{20}(?:\.\w{1,10})?"


@asynccontextmanager
async def without_files(store: Store, home: Home, session: str = "") -> AsyncIterator[None]:
    """Context manager around deleting sessions (this one, or any): removes saved input files that no log refers to
    any more."""
    before = _named(await store.history.holding(FOLDERS, session))
    yield
    if before and (gone := before - _named(await store.history.holding(FOLDERS))):
        await asyncio.to_thread(_remove, home, gone)


def _named(bodies: Sequence[str]) -> set[str]:
    return {name for body in bodies for name in re.findall(FILE, body)}


def _remove(home: Home, names: set[str]) -> None:
    for name in names:
        with suppress(OSError):  # It was of another home, or a person took it away.
            (home.root / name).unlink()
