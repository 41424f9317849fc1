"""Cost bound of a call before it is sent: size of its question, price, longest reply."""

from __future__ import annotations

from collections import OrderedDict

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import ModelRequest, Prefix, Usage
from hermes_agent.core.section import estimate_tokens, tools_text
from hermes_agent.core.spending import NANO, Bid, nanos
from hermes_agent.providers.catalog import PER_MILLION
from hermes_agent.providers.route import DEFAULT_OUTPUT, Route

# No tokenizer makes more than a token of a byte; the estimate takes four bytes for one.
MOST_UNDERESTIMATED = 4
# The prefix is our own words and JSON, which tokenizers know.
PREFIX_UNDERESTIMATED = 2
KEPT_SIZES = 256
# In a window smaller than this a reply may take a quarter, so that the question and what follows have room.
SMALL_WINDOW = 65_536
REPLY_SHARE = 4


def bid_of(route: Route, request: ModelRequest, *, tokens: int, configured: int | None) -> Bid:
    """The bid of this request: `tokens` is the maximum of its input, `configured` the setting for the longest reply."""
    facts = route.facts
    share = facts.window // REPLY_SHARE if facts.window < SMALL_WINDOW else None
    cap = min((cap for cap in (request.max_output, configured, share) if cap is not None), default=None)
    known = facts.output or (DEFAULT_OUTPUT if cap is None else cap)
    longest = known if cap is None else min(known, cap)
    question: int | None = None
    rate: float | None = None
    if facts.price is not None:
        price = facts.price.at(tokens)
        question = nanos(tokens * max(price.input, price.cache_write) / PER_MILLION)
        rate = price.output * NANO / PER_MILLION
    return Bid(
        model=route.name,
        tokens=tokens,
        longest=longest,
        cap=cap,
        sure=facts.output is not None,
        question=question,
        rate=rate,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """The estimated and the provider's token count of a request."""

    estimated: int
    counted: int


class Sizes:
    """Upper bounds for the tokens of requests. Bytes / 4 is too little for some scripts and tokenizers, and one token
    per byte far too much for most. So the part that the provider has counted before has that count, and only later
    messages are counted as bytes."""

    def __init__(self) -> None:
        self._conversations: OrderedDict[tuple[str, str, str], _Counted] = OrderedDict()
        self._prefixes: OrderedDict[str, int] = OrderedDict()

    def most(self, model: str, request: ModelRequest, estimated: int) -> int:
        """The maximum tokens of this request to that model; `estimated` is its size by bytes / 4."""
        known = self._conversations.get((model, request.session, request.purpose))
        if known is not None and known.estimated <= estimated:
            return known.counted + MOST_UNDERESTIMATED * (estimated - known.estimated)
        prefix = min(estimated, self._prefix(request.prefix))
        return PREFIX_UNDERESTIMATED * prefix + MOST_UNDERESTIMATED * (estimated - prefix)

    def learn(self, model: str, request: ModelRequest, estimated: int, usage: Usage) -> None:
        """Record the provider's count of the request."""
        if not usage.known or not usage.input:
            return
        key = (model, request.session, request.purpose)
        self._conversations.pop(key, None)
        self._conversations[key] = _Counted(estimated=estimated, counted=usage.input)
        if len(self._conversations) > KEPT_SIZES:
            self._conversations.popitem(last=False)

    def _prefix(self, prefix: Prefix) -> int:
        size = self._prefixes.get(prefix.hash)
        if size is None:
            size = estimate_tokens(prefix.system) + estimate_tokens(tools_text(prefix.tools))
            self._prefixes[prefix.hash] = size
            if len(self._prefixes) > KEPT_SIZES:
                self._prefixes.popitem(last=False)
        return size
