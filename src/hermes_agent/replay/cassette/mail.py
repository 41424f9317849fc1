"""Which mail a run found when it looked, recorded and found again."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.replay.cassette.lines import MailRead, RunOver
from hermes_agent.replay.cassette.tracks import RecordedTrack, ReplayedTrack
from hermes_agent.replay.cassette.writing import CassetteFile


class RecordedGate:
    """An `agent.Gate` that writes down what is found."""

    def __init__(self, file: CassetteFile, track: RecordedTrack) -> None:
        self._file = file
        self._track = track

    def may_have(self, rung: bool) -> bool:
        """As the ring says."""
        return rung

    async def ready(self) -> None:
        """At once."""

    async def accepted(self) -> frozenset[str] | None:
        """All that is there."""
        return None

    def found(self, source_ids: Sequence[str]) -> None:
        """This look found something."""
        self._file.add(MailRead(track=self._track.name, mail=tuple(source_ids)))


class ReplayedGate:
    """An `agent.Gate` that finds what was found at the same place of the recording."""

    def __init__(self, track: ReplayedTrack) -> None:
        self._track = track

    def may_have(self, rung: bool) -> bool:  # noqa: ARG002  the recording knows
        """Whether the recording goes on with a look, or with mail for the next run."""
        inside = self._track.inside
        return isinstance(inside, MailRead) or (isinstance(inside, RunOver) and inside is not self._track.coming)

    async def ready(self) -> None:
        """When the recording goes on with a look."""
        await self._track.until(MailRead, "mail is looked for")

    async def accepted(self) -> frozenset[str] | None:
        """The mail that was found then."""
        if isinstance(self._track.inside, MailRead):
            line = await self._track.turn(MailRead, lambda _line: True, "mail is looked for")
            return frozenset(line.mail)
        if isinstance(self._track.inside, RunOver) and self._track.will_be_stopped:
            await self._track.hang()
        if isinstance(self._track.inside, RunOver):
            await self._track.until(RunOver, "mail for the next run comes")
        return frozenset()

    def found(self, source_ids: Sequence[str]) -> None:
        """Nothing is kept."""
