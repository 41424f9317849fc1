"""What a call may cost, settled before it is sent."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_agent.core.errors import LimitReached
from hermes_agent.core.model import ModelRequest
from hermes_agent.providers.catalog import PER_MILLION, ModelFacts
from hermes_agent.providers.route import DEFAULT_OUTPUT

LEAST_REPLY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The most that a reply may have in tokens (None: the model's own limit); in US dollars what the question costs
    and the most that the whole call may cost (None: the price is unknown)."""

    max_output: int | None
    question: float | None = None
    dollars: float | None = None


def allow(facts: ModelFacts, request: ModelRequest, *, tokens: int, configured: int | None) -> Allowance:
    """What this request may use: `tokens` is the estimated size of its input, `configured` the setting's longest reply.

    Where money is limited, the reply is capped so that the worst case fits; `LimitReached` where not even the question
    does. A model of unknown price cannot be held to a limit of money.
    """
    caps = [cap for cap in (request.max_output, configured) if cap is not None]
    if facts.price is None:
        return Allowance(max_output=min(caps, default=None))
    rate = facts.price.at(tokens)
    question = tokens * max(rate.input, rate.cache_write) / PER_MILLION
    longest = min([*caps, facts.output or DEFAULT_OUTPUT])
    if request.money is not None and rate.output > 0:
        affordable = int((request.money - question) * PER_MILLION / rate.output)
        if affordable < min(LEAST_REPLY, longest):
            raise LimitReached(
                f"Stopped: the money limit (`agent.max_money`) was reached: ${max(0.0, request.money):.4f} is left and "
                f"the next question alone costs about ${question:.4f}.",
                limit="money limit",
            )
        if affordable < longest:
            longest = affordable
            caps.append(affordable)
    most = question + longest * rate.output / PER_MILLION
    return Allowance(max_output=min(caps, default=None), question=question, dollars=most)
