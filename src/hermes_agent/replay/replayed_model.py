"""A model that answers from a cassette."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

from hermes_agent.core.errors import CassetteError, LimitReached, RequestDiffers
from hermes_agent.core.model import Delta, Model, ModelRequest, Reply, Through
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.cassette import Cassette
from hermes_agent.replay.lines import Answered, Asked, Piece, Raised, RowOpened, RowSettled, Whole, raised
from hermes_agent.replay.questions import Questions
from hermes_agent.replay.tracks import ReplayedTrack, TapeClock

Found = tuple[Asked, Answered]


class RecordedNames:
    """The name and the tokens of context of the model that was asked on a track (empty: on any)."""

    def __init__(self, cassette: Cassette, track: str) -> None:
        found = (asked for asked, _ in cassette.steps if track in ("", asked.track))
        first = next(found, None)
        self.name, self.window = ("replay/nothing", 8_192) if first is None else (first.model, first.window)


class StrictModel(RecordedNames):
    """Answers each question with what was recorded next on its track; one that differs raises `RequestDiffers`.

    An answer that somebody cut short waits for that; with `cuts` False nobody will do so here, and the replay ends.
    """

    def __init__(
        self,
        cassette: Cassette,
        track: ReplayedTrack,
        questions: Questions,
        ledger: Ledger,
        *,
        cuts: bool,
    ) -> None:
        super().__init__(cassette, track.name)
        self._cassette = cassette
        self._track = track
        self._questions = questions
        self._ledger = ledger
        self._cuts = cuts

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`; also raises `CassetteError`."""
        what = f"{request.purpose}, turn {request.turn} of session {request.session}, is asked"
        asked = await self._track.turn(Asked, lambda line: line.purpose == request.purpose, what)
        if words := self._questions.difference(request, asked):
            raise RequestDiffers(f"Step {asked.n}: the request differs from the recorded one in {words}.")
        answered = self._cassette.answers.get(asked.n)
        if answered is None:
            raise CassetteError(f"The recording ends in the middle of step {asked.n}.")
        before, after = _at_the_cut(answered)
        if not answered.cut:
            await self._track.turn(Answered, lambda line: line.n == asked.n, f"step {asked.n} is answered")
        async with aclosing(played(before, self._ledger, self._track.clock)) as items:
            async for item in items:
                yield item
        if not answered.cut:
            return
        if not self._cuts:
            raise CassetteError(f"In the recording, step {asked.n} was stopped here.")
        try:
            await self._track.hang()
        finally:
            async with aclosing(played(after, self._ledger, None)) as rest:
                async for _ in rest:
                    pass
            if self._track.coming is answered:
                self._track.come(answered)


class NearestModel(RecordedNames):
    """Answers each question with the recorded answer to the most similar one of the same purpose; of equals, the first
    that was not given yet."""

    def __init__(self, cassette: Cassette, clock: TapeClock, questions: Questions, ledger: Ledger) -> None:
        super().__init__(cassette, "")
        self._cassette = cassette
        self._clock = clock
        self._questions = questions
        self._ledger = ledger
        self._given: set[int] = set()

    def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`; also raises `CassetteError`."""
        asked, answered = self._nearest(request)
        self._given.add(asked.n)
        pieces = [
            replace(piece, at=max(piece.at, self._clock.now()), t=max(piece.t, self._clock.monotonic()))
            for piece in answered.pieces
        ]
        return played(pieces, self._ledger, self._clock)

    def _nearest(self, request: ModelRequest) -> Found:
        found = [
            (asked, answered)
            for asked, answered in self._cassette.steps
            if answered is not None and not answered.cut and asked.purpose == request.purpose
        ]
        if not found:
            raise RequestDiffers(f"The recording has no answer for the purpose `{request.purpose}`.")
        return max(
            found,
            key=lambda each: (
                self._questions.likeness(request, each[0]),
                each[0].n not in self._given,
                -each[0].n,
            ),
        )


class LiveFrom(Through):
    """Answers as recorded up to the step `live_from`, and from then on, for good, as the model that `live` makes."""

    def __init__(self, steps: Sequence[Found], questions: Questions, live: Model, live_from: int) -> None:
        super().__init__(live)
        self._steps = [(asked, answered) for asked, answered in steps if asked.n < live_from and not answered.cut]
        self._questions = questions
        self.is_live = False

    def go_on_from(self, before: LiveFrom) -> None:
        """Begin where the model of the run before stands."""
        self._steps, self.is_live = before._steps, before.is_live

    def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`; also raises `CassetteError`."""
        if not self._steps:
            self.is_live = True
            return self._model.ask(request)
        asked, answered = self._steps.pop(0)
        if words := self._questions.said_otherwise(request, asked):
            raise RequestDiffers(f"Step {asked.n}: the request differs from the recorded one in {words}.")
        return played(answered.pieces, None, None)


async def played(
    pieces: Collection[Piece], ledger: Ledger | None, clock: TapeClock | None
) -> AsyncGenerator[Delta | Reply, None]:
    """The pieces of an answer as a model gives them, each at its moment; without a ledger nothing is written down."""
    for piece in pieces:
        if clock is not None:
            clock.set(piece.at, piece.t)
        match piece.item:
            case RowOpened(call=opened):
                if ledger is not None:
                    with suppress(LimitReached):  # what that led to follows in the recording
                        await ledger.open(opened)
            case RowSettled(call=settled):
                if ledger is not None:
                    await ledger.complete(settled)
            case Whole(reply=reply):
                yield reply
            case Raised():
                raise raised(piece.item)
            case delta:
                yield delta


def _at_the_cut(answered: Answered) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """What had come when whoever asked went away, and what was written down after that."""
    pieces, end = answered.pieces, len(answered.pieces)
    while answered.cut and end and isinstance(pieces[end - 1].item, RowSettled):
        end -= 1
    return pieces[:end], pieces[end:]
