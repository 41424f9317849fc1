"""What follows a failed attempt, as a pure function: try again after a while, or give up."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_agent.core.errors import EmptyReply, ProviderError, ThinkingRefused

FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
LONGEST_WAIT = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How a call stands: `made` attempts failed, `left` seconds remain until its deadline (None: no deadline)."""

    made: int
    left: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAfter:
    """Try again after `delay` seconds."""

    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Report the error; `reason` says why there is no further attempt."""

    reason: str


Decision = RetryAfter | GiveUp


def decide(error: ProviderError, attempts: Attempts, *, max_retries: int, chance: float) -> Decision:
    """What to do after this error. `chance` in [0, 1) is the random part of the back-off.

    The delay is 0.5 s, doubled with each attempt up to 30 s, of which a random half is taken off, so that many
    clients do not come back together; where the provider said when to come back, that moment. It never reaches the
    deadline, and a provider that wants more than five minutes is not waited for.
    """
    if not error.retryable:
        return GiveUp(reason="another attempt would end the same way")
    if attempts.made > allowed_retries(error, max_retries):
        return GiveUp(reason="no attempt is left (`model.max_retries`)")
    if error.retry_after is not None:
        delay = error.retry_after
        if delay > LONGEST_WAIT:
            return GiveUp(reason=f"the provider wants {delay:.0f} s of rest")
    else:
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(attempts.made - 1, 10)) * (1 - chance / 2)
    if attempts.left is not None and delay >= attempts.left:
        return GiveUp(reason="the deadline comes before another attempt")
    return RetryAfter(delay=delay)


def allowed_retries(error: ProviderError, max_retries: int) -> int:
    """An empty reply is worth one more question, not several: it was paid for. Without the thinking that was refused
    there is nothing left to leave out."""
    return min(1, max_retries) if isinstance(error, EmptyReply | ThinkingRefused) else max_retries
