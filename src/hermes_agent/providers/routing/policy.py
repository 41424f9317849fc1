"""Retry policy as a pure function: after a failed attempt retry, use another key, shrink, fall back to the next
model, or stop.

Its input are the failed attempts, the chain with credentials and cool-downs, and the time; the broker acts on the
result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import (
    AuthRefused,
    BadRequest,
    ContextTooLong,
    EmptyReply,
    MalformedReply,
    ModelNotFound,
    OutOfCredit,
    Overloaded,
    PayloadTooLarge,
    ProviderError,
    RateLimited,
    ServerFailed,
    Stalled,
    ThinkingRefused,
    TimedOut,
    Unreachable,
)
from hermes_agent.store.cooldowns import CoolDown

FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
LONGEST_WAIT = 300.0
# A rest that the provider asks for is waited for rather than left for another model, if it is no longer than this.
SHORT_WAIT = 10.0
LONGEST_REST = 24 * 3600.0
MOST_SHRINKS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One model of the chain: `credentials` are names in order of preference, at least one; `window` is in tokens."""

    provider: str
    model: str
    credentials: tuple[str, ...]
    window: int

    @property
    def name(self) -> str:
        """`vendor/model`."""
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Target of an attempt: the index of the station and the name of the credential."""

    station: int = 0
    credential: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A failed attempt: `tokens` is the estimated size of its question; `prefilled`: the reply's beginning was given
    to the model."""

    place: Place
    kind: type[ProviderError]
    tokens: int = 0
    retry_after: float | None = None
    prefilled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All other inputs of the decision. `now` is seconds since 1970, `left` the seconds until the deadline (None:
    none); `smaller` the estimated size of the question when shrunk once more (None: impossible); `chance` in [0, 1) the
    random part of the back-off."""

    chain: tuple[Station, ...]
    rests: tuple[CoolDown, ...] = ()
    now: float = 0.0
    left: float | None = None
    max_retries: int = 3
    cool_down: float = 60.0
    smaller: int | None = None
    chance: float = 0.5

    def resting_until(self, place: Place) -> float:
        """The end of this place's cool-down; 0 where there is none."""
        station = self.chain[place.station]
        ends = (
            rest.until
            for rest in self.rests
            if rest.until > self.now and rest.covers(station.provider, place.credential, station.model)
        )
        return max(ends, default=0.0)


class Step(StrEnum):
    """Kind of the next attempt."""

    RETRY = "retry"
    ROTATE = "rotate"
    SHRINK = "shrink"
    FALL_BACK = "fall back"
    NO_PREFILL = "no prefill"
    NO_THINKING = "no thinking"


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """Decision for another attempt at `place` after `delay` seconds; `rests` are new cool-downs."""

    step: Step
    place: Place
    delay: float = 0.0
    rests: tuple[CoolDown, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Decision to report the error; `reason` says why there is no further attempt."""

    reason: str
    rests: tuple[CoolDown, ...] = ()


Decision = Try | GiveUp
History = tuple[Failed, ...]

# What is tried after an outcome, in this order; what is not named here would end the same way everywhere.
REMEDIES: Mapping[type[ProviderError], tuple[Step, ...]] = {
    AuthRefused: (Step.ROTATE, Step.FALL_BACK),
    OutOfCredit: (Step.ROTATE, Step.FALL_BACK),
    RateLimited: (Step.ROTATE, Step.RETRY, Step.FALL_BACK),
    Overloaded: (Step.RETRY, Step.FALL_BACK),
    ServerFailed: (Step.RETRY, Step.FALL_BACK),
    Unreachable: (Step.RETRY, Step.FALL_BACK),
    TimedOut: (Step.RETRY, Step.FALL_BACK),
    Stalled: (Step.RETRY, Step.FALL_BACK),
    MalformedReply: (Step.RETRY, Step.FALL_BACK),
    EmptyReply: (Step.RETRY, Step.FALL_BACK),
    ThinkingRefused: (Step.NO_THINKING, Step.FALL_BACK),
    ContextTooLong: (Step.SHRINK, Step.FALL_BACK),
    PayloadTooLarge: (Step.SHRINK, Step.FALL_BACK),
    ModelNotFound: (Step.FALL_BACK,),
    BadRequest: (Step.NO_PREFILL, Step.FALL_BACK),
}
LEAVING = frozenset({Step.ROTATE, Step.FALL_BACK})
# Seconds that a key rests after these, for every model or (None: until the provider said, else `cool_down`) for one.
KEY_RESTS: Mapping[type[ProviderError], float | None] = {AuthRefused: 300.0, OutOfCredit: 3600.0, RateLimited: None}
# These say nothing about the model's health, only about this question.
ABOUT_THE_QUESTION = frozenset({ContextTooLong, PayloadTooLarge, BadRequest, ThinkingRefused})


def begin(situation: Situation) -> Place:
    """The first place to ask: the first station with a credential that is not cooling down; where all are, the
    primary with the credential that is free first."""
    for number in range(len(situation.chain)):
        place = _free(situation, number, frozenset())
        if place is not None:
            return place
    return _soonest(situation, 0)


def decide(history: History, situation: Situation) -> Decision:
    """Decide what to do after the last of these failed attempts.

    - No attempt begins at or after the deadline.
    - A retry waits 0.5 s, doubled each time up to 30 s, minus a random half, so that many clients do not come
      back together; where the provider named a time, that time, up to five minutes.
    - At one station there are at most `max_retries` retries, one attempt per refused credential, one without the
      refused thinking, two shrunk questions; each station is begun once. So every chain of attempts ends.
    """
    if situation.left is not None and situation.left <= 0:
        return GiveUp(reason="the deadline has passed")
    rests = _rests(history[-1], situation)
    after = replace(situation, rests=(*situation.rests, *rests))
    reasons: list[str] = []
    for step in REMEDIES.get(history[-1].kind, ()):
        found = STEPS[step](history, after)
        if isinstance(found, Try):
            return replace(found, rests=rests) if step in LEAVING else found
        reasons.append(found)
    reason = next((each for each in reasons if each), "another attempt would end the same way")
    return GiveUp(reason=reason, rests=rests)


def _retry(history: History, situation: Situation) -> Try | str:
    last = history[-1]
    here = [failed for failed in _at_station(history) if Step.RETRY in REMEDIES.get(failed.kind, ())]
    same = [failed for failed in here if failed.kind is last.kind]
    is_over = len(here) > situation.max_retries
    if is_over or (last.kind is EmptyReply and len(same) > 1):  # It was paid for: once is enough.
        return "no attempt is left (`model.max_retries`)"
    delay = last.retry_after
    if delay is None:
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(len(here) - 1, 10)) * (1 - situation.chance / 2)
    elif delay > LONGEST_WAIT or (delay > SHORT_WAIT and _next_station(history, situation) is not None):
        return f"the provider asks for a pause of {delay:.0f} s"
    if situation.left is not None and delay >= situation.left:
        return "the deadline comes before another attempt"
    return Try(step=Step.RETRY, place=last.place, delay=delay)


def _rotate(history: History, situation: Situation) -> Try | str:
    here = history[-1].place.station
    tried = frozenset(
        failed.place.credential for failed in history if failed.place.station == here and failed.kind in KEY_RESTS
    )
    place = _free(situation, here, tried)
    if place is None:
        several = len(situation.chain[here].credentials) > 1
        return "no other key of this provider can be used now" if several else ""
    return Try(step=Step.ROTATE, place=place)


def _shrink(history: History, situation: Situation) -> Try | str:
    last = history[-1]
    shrunk = sum(failed.kind in {ContextTooLong, PayloadTooLarge} for failed in history)
    if situation.smaller is None or situation.smaller >= last.tokens or shrunk > MOST_SHRINKS:
        return "what is sent cannot be made smaller without losing what counts"
    return Try(step=Step.SHRINK, place=last.place)


def _fall_back(history: History, situation: Situation) -> Try | str:
    place = _next_station(history, situation)
    return "" if place is None else Try(step=Step.FALL_BACK, place=place)


def _without_prefill(history: History, situation: Situation) -> Try | str:  # noqa: ARG001 - a step's signature
    last = history[-1]
    begun = sum(failed.prefilled and failed.kind is BadRequest for failed in history)
    return Try(step=Step.NO_PREFILL, place=last.place) if last.prefilled and begun == 1 else ""


def _without_thinking(history: History, situation: Situation) -> Try | str:  # noqa: ARG001 - a step's signature
    refused = sum(failed.kind is ThinkingRefused for failed in _at_station(history))
    return Try(step=Step.NO_THINKING, place=history[-1].place) if refused == 1 else ""


def _at_station(history: History) -> list[Failed]:
    """The failed attempts at the station of the last one."""
    return [failed for failed in history if failed.place.station == history[-1].place.station]


STEPS: Mapping[Step, Callable[[History, Situation], Try | str]] = {
    Step.RETRY: _retry,
    Step.ROTATE: _rotate,
    Step.SHRINK: _shrink,
    Step.FALL_BACK: _fall_back,
    Step.NO_PREFILL: _without_prefill,
    Step.NO_THINKING: _without_thinking,
}


def _next_station(history: History, situation: Situation) -> Place | None:
    """The first station that was not asked yet, one that rests only where there is no other; for a question that was
    too long, one with a larger window."""
    last = history[-1]
    asked = {failed.place.station for failed in history}
    left = [number for number in range(len(situation.chain)) if number not in asked]
    if last.kind is ContextTooLong:
        least = max(situation.chain[number].window for number in asked)
        left = [number for number in left if situation.chain[number].window > least]
    free = (_free(situation, number, frozenset()) for number in left)
    found = next((place for place in free if place is not None), None)
    return _soonest(situation, left[0]) if found is None and left else found


def _free(situation: Situation, station: int, without: frozenset[str]) -> Place | None:
    """The station's preferred credential that does not rest."""
    places = (
        Place(station=station, credential=name) for name in situation.chain[station].credentials if name not in without
    )
    return next((place for place in places if not situation.resting_until(place)), None)


def _soonest(situation: Situation, station: int) -> Place:
    places = [Place(station=station, credential=name) for name in situation.chain[station].credentials]
    return min(places, key=situation.resting_until)


def _rests(last: Failed, situation: Situation) -> tuple[CoolDown, ...]:
    """What rests once this attempt's place is left: never more than the key, or the model, that was asked in it."""
    station = situation.chain[last.place.station]
    if last.kind in ABOUT_THE_QUESTION or last.kind not in REMEDIES:
        return ()
    if last.kind not in KEY_RESTS:
        until, credential, model = situation.now + situation.cool_down, "", station.model
    else:
        seconds = KEY_RESTS[last.kind]
        model = station.model if seconds is None else ""
        if seconds is None:
            seconds = situation.cool_down if last.retry_after is None else min(last.retry_after, LONGEST_REST)
        until, credential = situation.now + seconds, last.place.credential
    rest = CoolDown(
        provider=station.provider, credential=credential, model=model, until=until, reason=last.kind.__name__
    )
    return (rest,)
