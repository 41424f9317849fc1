"""Cassette files (recordings): writer without secrets, reader, and the comparison of requests with recorded ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import CassetteError
from hermes_agent.core.messages import Message, ModelRequest, Prefix, TextDelta, ThinkingDelta
from hermes_agent.core.records import texts_in, with_texts
from hermes_agent.core.section import short_hash, tools_text
from hermes_agent.host.paths import PRIVATE_FILE, reason, way_out
from hermes_agent.replay.lines import (
    VERSION,
    Answered,
    Asked,
    Header,
    Line,
    MessageShown,
    Piece,
    Planned,
    PrefixShown,
    Seen,
    SessionMade,
    Turn,
    line_of,
    plain_of,
)
from hermes_agent.store.transaction import plain, written

Redact = Callable[[str], str]
BETWEEN = "\n\0\n"
"""What stands between texts that are looked at together: no secret goes over it."""


class CassetteFile:
    """Append-only writer of a new cassette file, private to its owner. Each line is one write, so a crash tears at
    most the last. Raises `CassetteError` if the file exists or cannot be written."""

    def __init__(self, path: Path, redact: Redact) -> None:
        self.path = path
        self.redact = redact
        self._handle: int | None = None
        self._made = False

    def open(self) -> bool:
        """Create the file, or reopen the one this object created. Returns whether it is new."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | (0 if self._made else os.O_CREAT | os.O_EXCL)
        try:
            self._handle = os.open(self.path, flags, PRIVATE_FILE)
        except FileExistsError as error:
            raise CassetteError(f"{self.path} exists: a recording needs a new file.") from error
        except OSError as error:
            raise self._unwritable(error) from error
        is_new, self._made = not self._made, True
        return is_new

    def add(self, line: Line) -> None:
        """Append a line with secrets redacted."""
        assert self._handle is not None  # lines come between `open` and `close`
        text = written(without_secrets(plain_of(line), self.redact)).encode()
        try:
            left = memoryview(text + b"\n")
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Close the file; `open` can resume it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _unwritable(self, error: OSError) -> CassetteError:
        return CassetteError(f"{self.path} cannot be written ({reason(error)}): {way_out(error, self.path)}")


def without_secrets(plain: Any, redact: Redact) -> Any:  # noqa: ANN401  any JSON value, and the same shape again
    """Redact every string in a JSON value, including keys, before encoding, since JSON escapes would hide a secret."""
    joined = BETWEEN.join(texts_in(plain, keys=True))
    return plain if redact(joined) == joined else with_texts(plain, redact, keys=True)


def digest(value: object, redact: Redact) -> str:
    """Digest of a value as the cassette stores it (redacted)."""
    return short_hash(written(without_secrets(plain_of(value), redact)))


class Digests:
    """Incremental digests of a growing message list: unchanged messages at its beginning are not hashed again."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._known: list[tuple[Message, str]] = []

    def follow(self, messages: Sequence[Message]) -> tuple[int, tuple[str, ...]]:
        """How many leading messages are unchanged since the last call, and the digests of all."""
        known, same = self._known, 0
        while same < min(len(known), len(messages)) and known[same][0] == messages[same]:
            same += 1
        self._known[same:] = [(each, digest(each, self._redact)) for each in messages[same:]]
        return same, tuple(id_ for _, id_ in self._known)


def whole_words(pieces: Sequence[Piece], redact: Redact) -> tuple[Piece, ...]:
    """Redact secrets that span several pieces of a streamed answer: the redacted text goes into the first piece of
    its kind, the others become empty."""
    for kind in (TextDelta, ThinkingDelta):
        joined = "".join(piece.item.text for piece in pieces if isinstance(piece.item, kind))
        if (clean := redact(joined)) != joined:
            words = iter((clean,))
            pieces = [
                replace(piece, item=kind(text=next(words, ""))) if isinstance(piece.item, kind) else piece
                for piece in pieces
            ]
    return tuple(pieces)


@dataclass(frozen=True, kw_only=True)
class Cassette:
    """A parsed recording. `notes`: tolerated problems of the file."""

    header: Header
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    _questions: dict[int, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def steps(self) -> tuple[tuple[Asked, Answered | None], ...]:
        """Every model exchange in order; the answer is None if the recording ends before it."""
        return tuple((line, self.answers.get(line.n)) for line in self.lines if isinstance(line, Asked))

    @cached_property
    def answers(self) -> dict[int, Answered]:
        """Model answers by step."""
        return {line.n: line for line in self.lines if isinstance(line, Answered)}

    @cached_property
    def messages(self) -> dict[str, Message]:
        """Messages shown to models, by digest."""
        return {line.id: line.message for line in self.lines if isinstance(line, MessageShown)}

    @cached_property
    def prefixes(self) -> dict[str, Prefix]:
        """The prefixes, by digest."""
        return {line.id: line.prefix for line in self.lines if isinstance(line, PrefixShown)}

    @cached_property
    def planned(self) -> dict[str, Planned]:
        """Planned facts of tool calls, by digest of name and arguments."""
        return {line.id: line for line in self.lines if isinstance(line, Planned)}

    @cached_property
    def sessions(self) -> dict[str, SessionMade]:
        """The sessions, by track."""
        return {line.track: line for line in self.lines if isinstance(line, SessionMade)}

    @cached_property
    def environment(self) -> dict[str, Seen]:
        """Recorded prompt environments, by track."""
        return {line.track: line for line in self.lines if isinstance(line, Seen)}

    def turns(self, track: str) -> list[Turn]:
        """The ordered lines of a track."""
        return [line for line in self.lines if isinstance(line, Turn) and line.track == track]

    def shown(self, n: int) -> tuple[str, ...]:
        """Digests of the messages sent in step `n`."""
        if not self._questions:
            last: dict[str, tuple[str, ...]] = {}
            for asked, _ in self.steps:
                last[asked.track] = self._questions[asked.n] = (*last.get(asked.track, ())[: asked.kept], *asked.added)
        return self._questions[n]


def read_cassette(path: Path) -> Cassette:
    """Read a recording; a torn last line is skipped and noted. Raises `CassetteError`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CassetteError(f"{path} cannot be read ({reason(error)}).") from error
    rows, notes = content.split(b"\n"), list[str]()
    torn = rows.pop()
    if torn:
        notes.append(f"{path}:{len(rows) + 1}: the last line is torn and left out; the recording was cut short.")
    lines = tuple(_lines(path, rows))
    if not lines or not isinstance(lines[0], Header):
        raise CassetteError(
            f"{path} is not a recording: its first line is not a header. `hermes --record FILE` makes one."
        )
    return Cassette(header=lines[0], lines=lines[1:], notes=tuple(notes))


def _lines(path: Path, rows: list[bytes]) -> Iterator[Line]:
    for number, row in enumerate(rows, start=1):
        try:
            value = plain(row.decode())
            if number == 1:
                _check_version(path, value)
            yield line_of(value)
        except (ValueError, LookupError, AttributeError) as error:
            raise CassetteError(f"{path}:{number} is not a line of a recording ({error}).") from error


def _check_version(path: Path, header: object) -> None:
    version = header.get("version") if isinstance(header, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise CassetteError(f"{path} was recorded by a later version (format {version}; this one reads {VERSION}).")


SHOWN = 60
LOOKED_AT = 2_000
"""Characters that are compared for likeness."""


class Questions:
    """Compares the model requests of a replay with those of a cassette."""

    def __init__(self, cassette: Cassette, redact: Redact) -> None:
        self._cassette = cassette
        self._redact = redact
        self._digests = Digests(redact)
        self._prefixes: dict[str, str] = {}

    def ids(self, messages: Sequence[Message]) -> tuple[str, ...]:
        """The digests of the messages."""
        return self._digests.follow(messages)[1]

    def difference(self, request: ModelRequest, asked: Asked) -> str:
        """The first difference from the recorded request, as a sentence; empty if equal."""
        if words := self._prefix_difference(request.prefix, asked.prefix):
            return words
        return _messages_difference(*self._messages(request, asked)) or _settings_difference(request, asked)

    def said_otherwise(self, request: ModelRequest, asked: Asked) -> str:
        """As `difference`, but only for messages of people, models and tools; the prompt and runtime notes may
        differ."""
        both = self._messages(request, asked)
        return _messages_difference(*([each for each in messages if _is_said(each[0])] for messages in both))

    def _messages(self, request: ModelRequest, asked: Asked) -> tuple[list[tuple[Message, str]], ...]:
        """The current and the recorded messages, each with its digest."""
        now = list(zip(request.messages, self.ids(request.messages), strict=True))
        return now, [(self._cassette.messages[id_], id_) for id_ in self._cassette.shown(asked.n)]

    def likeness(self, request: ModelRequest, asked: Asked) -> float:
        """Similarity of two requests, from 0 to 1: shared messages and the text of the last one."""
        now, then = self.ids(request.messages), self._cassette.shown(asked.n)
        if now == then:
            return 1.0
        shared = len(set(now) & set(then)) / max(len(now), len(then), 1)
        if not now or not then:
            return shared / 2
        last, recorded = _text(request.messages[-1]), _text(self._cassette.messages[then[-1]])
        return 0.45 * shared + 0.54 * likeness(last, recorded)

    def _prefix_difference(self, now: Prefix, then: str) -> str:
        if now.hash not in self._prefixes:
            self._prefixes[now.hash] = digest([now.system, now.tools], self._redact)
        if self._prefixes[now.hash] == then:
            return ""
        was = self._cassette.prefixes[then]
        if self._redact(now.system) != was.system:
            return _between("the system prompt", was.system, self._redact(now.system))
        names, recorded = [tool.name for tool in now.tools], [tool.name for tool in was.tools]
        if names != recorded:
            return f"the tools: {', '.join(recorded)} were recorded, now there are {', '.join(names)}"
        return _between("the tools' schemas", tools_text(was.tools), tools_text(now.tools))


def likeness(one: str, other: str) -> float:
    """Similarity of the beginnings of two texts, from 0 to 1."""
    return float(SequenceMatcher(None, one[:LOOKED_AT], other[:LOOKED_AT], autojunk=False).ratio())


def _is_said(message: Message) -> bool:
    return not message.is_runtime


def _messages_difference(now: Sequence[tuple[Message, str]], then: Sequence[tuple[Message, str]]) -> str:
    for place, ((message, id_), (was, recorded)) in enumerate(zip(now, then, strict=False)):
        if id_ != recorded and not _same_note(message, was):
            return _between(f"message {place + 1}", _text(was), _text(message))
    if len(now) != len(then):
        return f"the number of messages: {len(then)} were recorded, now there are {len(now)}"
    return ""


def _same_note(now: Message, then: Message) -> bool:
    """Whether a note of the runtime says the same: how its words are labelled, no model is sent."""
    return now.is_runtime and then.is_runtime and now.text == then.text


def _settings_difference(request: ModelRequest, asked: Asked) -> str:
    for name in ("effort", "use_tools", "max_output"):
        now, then = getattr(request, name), getattr(asked, name)
        if now != then:
            return f"`{name}`: recorded {then}, now {now}"
    return ""


def _text(message: Message) -> str:
    return message.text or written(plain_of(message.parts))


def _between(what: str, then: str, now: str) -> str:
    place = next((i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
    start = max(0, place - SHOWN // 3)
    return (
        f"{what} at character {place + 1}: recorded {then[start : start + SHOWN]!r}, now {now[start : start + SHOWN]!r}"
    )
