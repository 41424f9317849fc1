"""What a recording holds and what came of playing it, as values for whoever tells a person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from hermes_agent.app.replay.driver import Played
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Outcome, Replied, RunEnded, ToolEnded
from hermes_agent.core.messages import Message
from hermes_agent.replay.cassette import Cassette
from hermes_agent.replay.lines import Answered, Asked, Raised, RunOver, Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One model exchange of a recording."""

    step: int
    session: str
    purpose: str
    model: str
    turn: int
    seconds: float
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a session was played: the end of its last run, whether that failed, and every difference to the recording as
    a sentence."""

    session: str
    runs: int
    steps: int
    calls: int
    ended: str
    failed: bool = False
    differences: tuple[str, ...] = field(default_factory=tuple)

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def steps_of(cassette: Cassette) -> tuple[Step, ...]:
    """The exchanges of a recording, in order."""
    return tuple(_step(cassette, asked, answered) for asked, answered in cassette.steps)


def verdict_of(cassette: Cassette, played: Played) -> Verdict:
    """What came of playing a session."""
    ends = [entry.event for entry in played.entries if isinstance(entry.event, RunEnded)]
    return Verdict(
        session=played.session,
        runs=len(ends),
        steps=sum(isinstance(entry.event, Replied) for entry in played.entries),
        calls=sum(isinstance(entry.event, ToolEnded) for entry in played.entries),
        ended=ends[-1].text if ends else "",
        failed=bool(ends) and ends[-1].outcome is Outcome.FAILED,
        differences=tuple(_differences(cassette, played, ends)),
    )


def _step(cassette: Cassette, asked: Asked, answered: Answered | None) -> Step:
    made = cassette.sessions.get(asked.track.partition("/")[0])
    return Step(
        step=asked.n,
        session=asked.track if made is None else made.session.id,
        purpose=asked.purpose,
        model=asked.model,
        turn=asked.turn,
        seconds=0.0 if answered is None else answered.t - asked.t,
        said="(the recording ends here)" if answered is None else _said(answered),
    )


def _said(answered: Answered) -> str:
    item = answered.pieces[-1].item if answered.pieces else None
    if answered.cut:
        return "(stopped)"
    if isinstance(item, Raised):
        return f"{item.error}: {item.text}"
    return _words(item.reply.message) if isinstance(item, Whole) else ""


def _words(message: Message) -> str:
    calls = ", ".join(call.name for call in message.tool_calls)
    return " ".join([*message.text.split(), *([f"[{calls}]"] if calls else [])])


def _differences(cassette: Cassette, played: Played, ends: list[RunEnded]) -> Iterator[str]:
    """Replays that could not go on, and logs that ended elsewhere than in the recording."""
    for end in ends:
        if end.error in ("CassetteError", "RequestDiffers"):
            yield end.text
    recorded = [line for line in cassette.turns(played.track) if isinstance(line, RunOver)]
    numbers = [entry.number for entry in played.entries if isinstance(entry.event, RunEnded)]
    for place, line in enumerate(recorded, start=1):
        if numbers and line.number not in numbers:
            number = min(numbers, key=lambda each: abs(each - line.number))
            yield f"run {place} ended with event {line.number}, and now with event {number}"
