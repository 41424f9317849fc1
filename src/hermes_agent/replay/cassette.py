"""A cassette as a file, written line by line without secrets and read whole; and what of a question differs from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import CassetteError
from hermes_agent.core.messages import Message, Origin
from hermes_agent.core.model import ModelRequest, Prefix, TextDelta, ThinkingDelta
from hermes_agent.core.section import short_hash, tools_text
from hermes_agent.host.files import PRIVATE_FILE, reason, way_out
from hermes_agent.host.late import late
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
from hermes_agent.store.bodies import plain, written

Redact = Callable[[str], str]
BETWEEN = "\n\0\n"
"""What stands between texts that are looked at together: no secret goes over it."""


class CassetteFile:
    """A new file, readable by its owner alone, that only grows: each line is one write, so that a death of the process
    leaves at most the last one torn. Raises `CassetteError` where the file exists or cannot be written."""

    def __init__(self, path: Path, redact: Redact) -> None:
        self.path = path
        self.redact = redact
        self._handle: int | None = None
        self._made = False

    def open(self) -> bool:
        """Make the file, or go on with the one that this object made; whether it is new."""
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
        """Write a line, its secrets replaced."""
        assert self._handle is not None  # lines come between `open` and `close`
        text = written(without_secrets(plain_of(line), self.redact)).encode()
        try:
            left = memoryview(text + b"\n")
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """The recording is over, or paused."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _unwritable(self, error: OSError) -> CassetteError:
        return CassetteError(f"{self.path} cannot be written ({reason(error)}): {way_out(error, self.path)}")


def without_secrets(plain: Any, redact: Redact) -> Any:  # noqa: ANN401  any JSON value, and the same shape again
    """The JSON value with every text in it, keys too, redacted: as texts, since JSON's escapes would hide a secret."""
    joined = BETWEEN.join(_texts(plain))
    return plain if redact(joined) == joined else _redacted(plain, redact)


def _texts(plain: Any) -> Iterator[str]:  # noqa: ANN401  any JSON value
    match plain:
        case str():
            yield plain
        case Mapping():
            for value in (*plain, *plain.values()):
                yield from _texts(value)
        case list() | tuple():
            for value in plain:
                yield from _texts(value)


def _redacted(plain: Any, redact: Redact) -> Any:  # noqa: ANN401  any JSON value, and the same shape again
    match plain:
        case str():
            return redact(plain)
        case Mapping():
            return {redact(key): _redacted(value, redact) for key, value in plain.items()}
        case list() | tuple():
            return [_redacted(value, redact) for value in plain]
        case _:
            return plain


def digest(value: object, redact: Redact) -> str:
    """What a value is known by in a cassette: the digest of it as it is written there."""
    return short_hash(written(without_secrets(plain_of(value), redact)))


class Digests:
    """The digests of a sequence of messages that grows, each message looked at once."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._known: list[tuple[Message, str]] = []

    def follow(self, messages: Sequence[Message]) -> tuple[int, tuple[str, ...]]:
        """How many messages are those of the sequence before, and the digests of all."""
        known, same = self._known, 0
        while same < min(len(known), len(messages)) and known[same][0] == messages[same]:
            same += 1
        self._known[same:] = [(each, digest(each, self._redact)) for each in messages[same:]]
        return same, tuple(id_ for _, id_ in self._known)


def whole_words(pieces: Sequence[Piece], redact: Redact) -> tuple[Piece, ...]:
    """The pieces of an answer so that no secret is spread over several of them: where the joined words hold one, they
    stand redacted in the first piece of their kind, and the others are empty."""
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
    """A recording. `notes` says what was wrong with the file and could be put up with."""

    header: Header
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    _questions: dict[int, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def steps(self) -> tuple[tuple[Asked, Answered | None], ...]:
        """Every model exchange in order; None: the recording ends before it was over."""
        return tuple((line, self.answers.get(line.n)) for line in self.lines if isinstance(line, Asked))

    @cached_property
    def answers(self) -> dict[int, Answered]:
        """What came of each step."""
        return {line.n: line for line in self.lines if isinstance(line, Answered)}

    @cached_property
    def messages(self) -> dict[str, Message]:
        """The messages that models were shown, by digest."""
        return {line.id: line.message for line in self.lines if isinstance(line, MessageShown)}

    @cached_property
    def prefixes(self) -> dict[str, Prefix]:
        """The prefixes, by digest."""
        return {line.id: line.prefix for line in self.lines if isinstance(line, PrefixShown)}

    @cached_property
    def planned(self) -> dict[str, Planned]:
        """What calls would do, by digest of name and arguments."""
        return {line.id: line for line in self.lines if isinstance(line, Planned)}

    @cached_property
    def sessions(self) -> dict[str, SessionMade]:
        """The sessions, by track."""
        return {line.track: line for line in self.lines if isinstance(line, SessionMade)}

    @cached_property
    def environment(self) -> dict[str, Seen]:
        """What was found out about the surroundings, by track."""
        return {line.track: line for line in self.lines if isinstance(line, Seen)}

    def turns(self, track: str) -> list[Turn]:
        """The lines of a track whose order is kept."""
        return [line for line in self.lines if isinstance(line, Turn) and line.track == track]

    def shown(self, n: int) -> tuple[str, ...]:
        """The digests of the messages that step `n` was asked with."""
        if not self._questions:
            last: dict[str, tuple[str, ...]] = {}
            for asked, _ in self.steps:
                last[asked.track] = self._questions[asked.n] = (*last.get(asked.track, ())[: asked.kept], *asked.added)
        return self._questions[n]


def read_cassette(path: Path) -> Cassette:
    """The recording in this file; a torn last line is left out and noted. Raises `CassetteError`."""
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
    """What is asked now, beside what was asked then."""

    def __init__(self, cassette: Cassette, redact: Redact) -> None:
        self._cassette = cassette
        self._redact = redact
        self._digests = Digests(redact)
        self._prefixes: dict[str, str] = {}

    def ids(self, messages: Sequence[Message]) -> tuple[str, ...]:
        """The digests of the messages."""
        return self._digests.follow(messages)[1]

    def difference(self, request: ModelRequest, asked: Asked) -> str:
        """The first difference to the recorded question, as a sentence; empty where there is none."""
        if words := self._prefix_difference(request.prefix, asked.prefix):
            return words
        return _messages_difference(*self._messages(request, asked)) or _settings_difference(request, asked)

    def said_otherwise(self, request: ModelRequest, asked: Asked) -> str:
        """As `difference`, of what persons, models and tools said alone: the prompt and what the runtime tells are of
        now."""
        both = self._messages(request, asked)
        return _messages_difference(*([each for each in messages if _is_said(each[0])] for messages in both))

    def _messages(self, request: ModelRequest, asked: Asked) -> tuple[list[tuple[Message, str]], ...]:
        """The messages of now and of then, each with its digest."""
        now = list(zip(request.messages, self.ids(request.messages), strict=True))
        return now, [(self._cassette.messages[id_], id_) for id_ in self._cassette.shown(asked.n)]

    def likeness(self, request: ModelRequest, asked: Asked) -> float:
        """How alike the questions are, from 0 to 1: by the messages that they share and the words of the last one."""
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
    """How alike the beginnings of two texts are, from 0 to 1."""
    return float(late("difflib:SequenceMatcher")(None, one[:LOOKED_AT], other[:LOOKED_AT], autojunk=False).ratio())


def _is_said(message: Message) -> bool:
    return any(getattr(part, "origin", None) is not Origin.RUNTIME for part in message.parts)


def _messages_difference(now: Sequence[tuple[Message, str]], then: Sequence[tuple[Message, str]]) -> str:
    for place, ((message, id_), (was, recorded)) in enumerate(zip(now, then, strict=False)):
        if id_ != recorded:
            return _between(f"message {place + 1}", _text(was), _text(message))
    if len(now) != len(then):
        return f"the number of messages: {len(then)} were recorded, now there are {len(now)}"
    return ""


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
