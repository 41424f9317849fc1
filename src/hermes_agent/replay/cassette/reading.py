"""A cassette that was recorded, read whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import CassetteError
from hermes_agent.core.messages import Message
from hermes_agent.core.model import Prefix
from hermes_agent.host.files import reason
from hermes_agent.replay.cassette.lines import (
    VERSION,
    Answered,
    Asked,
    Header,
    Line,
    MessageShown,
    Planned,
    PrefixShown,
    Seen,
    SessionMade,
    Turn,
    line_of,
)
from hermes_agent.store.bodies import plain


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
        raise CassetteError(f"{path} is no recording: its first line is no header. `hermes --record FILE` makes one.")
    return Cassette(header=lines[0], lines=lines[1:], notes=tuple(notes))


def _lines(path: Path, rows: list[bytes]) -> Iterator[Line]:
    for number, row in enumerate(rows, start=1):
        try:
            value = plain(row.decode())
            if number == 1:
                _check_version(path, value)
            yield line_of(value)
        except (ValueError, LookupError, AttributeError) as error:
            raise CassetteError(f"{path}:{number} is no line of a recording ({error}).") from error


def _check_version(path: Path, header: object) -> None:
    version = header.get("version") if isinstance(header, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise CassetteError(f"{path} was recorded by a later version (format {version}; this one reads {VERSION}).")
