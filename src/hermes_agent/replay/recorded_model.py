"""A model whose exchanges are recorded: what was asked, all that came back, and what went into the ledger."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing

from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Message
from hermes_agent.core.model import Delta, ModelRequest, Prefix, Reply, Through
from hermes_agent.core.spending import Grant
from hermes_agent.providers.broker import CallOpened, CallSettled, Ledger
from hermes_agent.providers.budget import Sizes
from hermes_agent.replay.cassette import Digests, digest, whole_words
from hermes_agent.replay.lines import (
    Answered,
    Asked,
    Item,
    MessageShown,
    Piece,
    PrefixShown,
    RowOpened,
    RowSettled,
    Whole,
    noted,
)
from hermes_agent.replay.seam import Live
from hermes_agent.replay.tracks import RecordedStops, RecordedTrack


class RecordedModel(Through):
    """A `Model` that answers as another one and writes it down: one exchange at a time, question and answer. `stops`
    are those of the run that it works for."""

    def __init__(self, track: RecordedTrack, stops: RecordedStops, steps: Iterator[int], written: set[str]) -> None:
        self._stops = stops
        self._track = track
        self._redact = track.file.redact
        self._steps = steps
        self._written = written
        self._digests = Digests(track.file.redact)
        self._pieces: list[Piece] = []
        self._prefixes: dict[str, str] = {}
        self._step = 0
        self._asking = False

    async def bind(self, ledger: Ledger, live: Live) -> RecordedModel:
        """Answer as the model that `live` makes, whose rows in that ledger are recorded too."""
        super().__init__(await live(RecordedLedger(ledger, self.add)))
        return self

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`."""
        await self._stops.passed()
        self._goes_out(request)
        try:
            await self._stops.entered(self)
            async with aclosing(self._model.ask(request)) as items:
                async for item in items:
                    await self._stops.passed()
                    self._came(item)
                    yield item
        except HermesError as error:
            await self._stops.passed()
            self.add(noted(error))
            self._end()
            raise
        finally:
            if self._asking:
                self._track.tick()
                self._end(cut=True)

    def _goes_out(self, request: ModelRequest) -> None:
        self._track.tick()
        self._pieces, self._asking = [], True
        kept, added = self._shown(request.messages)
        prefix = self._prefix(request.prefix)
        self._step = next(self._steps)
        self._track.add(
            Asked(
                n=self._step,
                track=self._track.name,
                purpose=request.purpose,
                model=self.name,
                window=self.window,
                turn=request.turn,
                prefix=prefix,
                kept=kept,
                added=added,
                effort=request.effort,
                use_tools=request.use_tools,
                max_output=request.max_output,
            )
        )

    def _came(self, item: Delta | Reply) -> None:
        self.add(Whole(reply=item) if isinstance(item, Reply) else item)
        if isinstance(item, Reply):
            self._end()

    def add(self, item: Item) -> None:
        """Something comes back."""
        self._track.tick()
        clock = self._track.clock
        self._pieces.append(Piece(at=clock.now(), t=clock.monotonic(), item=item))

    def _end(self, *, cut: bool = False) -> None:
        """Nothing more comes back; with `cut`, because whoever asked has gone away."""
        self._asking = False
        self._stops.left(self)
        pieces = whole_words(self._pieces, self._redact)
        self._track.add(Answered(n=self._step, track=self._track.name, pieces=pieces, cut=cut))

    def _shown(self, messages: Sequence[Message]) -> tuple[int, tuple[str, ...]]:
        """How many messages are those of the question before, and the digests of the others, which are written once."""
        kept, ids = self._digests.follow(messages)
        for message, id_ in zip(messages[kept:], ids[kept:], strict=True):
            self._once(MessageShown(id=id_, message=message))
        return kept, ids[kept:]

    def _prefix(self, prefix: Prefix) -> str:
        if prefix.hash not in self._prefixes:
            self._prefixes[prefix.hash] = digest([prefix.system, prefix.tools], self._redact)
            self._once(PrefixShown(id=self._prefixes[prefix.hash], prefix=prefix))
        return self._prefixes[prefix.hash]

    def _once(self, line: MessageShown | PrefixShown) -> None:
        if line.id not in self._written:
            self._written.add(line.id)
            self._track.file.add(line)


class RecordedLedger:
    """The broker's book, what is written into it recorded with the exchange."""

    def __init__(self, ledger: Ledger, add: Callable[[Item], None]) -> None:
        self._ledger = ledger
        self._add = add

    @property
    def sizes(self) -> Sizes:
        """As the book itself."""
        return self._ledger.sizes

    async def open(self, call: CallOpened) -> Grant:
        """As the book itself."""
        self._add(RowOpened(call=call))
        return await self._ledger.open(call)

    async def complete(self, call: CallSettled) -> None:
        """As the book itself."""
        self._add(RowSettled(call=call))
        await self._ledger.complete(call)
