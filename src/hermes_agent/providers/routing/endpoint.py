"""An endpoint: one route under one credential; bounds the cost of a call, makes single attempts, and caches compiled
conversations."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import field, replace
from http import HTTPStatus
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ProviderError, TimedOut
from hermes_agent.core.messages import Delta, Message, ModelRequest, Prefix, Reply, Role, Usage
from hermes_agent.core.section import estimate_tokens, tools_text
from hermes_agent.core.shape import Shape, marks_of
from hermes_agent.core.spending import NANO, Bid, Grant, nanos
from hermes_agent.host.logs import log_of
from hermes_agent.providers.catalog import PER_MILLION, cost
from hermes_agent.providers.client import Client, Patience
from hermes_agent.providers.dialect import ConversationCompiler
from hermes_agent.providers.dialects import dialect_of
from hermes_agent.providers.local import real_window
from hermes_agent.providers.outcomes import Finished, failure
from hermes_agent.providers.reading import json_bytes
from hermes_agent.providers.route import DEFAULT_OUTPUT, Route
from hermes_agent.providers.routing.chain import Chain

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


# Conversations whose compiled requests are kept; the least recently asked one is compiled anew when it goes on.
KEPT_CONVERSATIONS = 32
HEX = 10
STALL_FACTOR = {"high": 2.0, "xhigh": 4.0, "max": 4.0}
# Before the first question, and once more before the second one: by then the server has loaded the model and knows.
MOST_PROBES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOpened:
    """Ledger entry of a request about to be sent, with its bid. A further attempt has `call_id` + `.2`, `.3`, ...;
    `credential` is the name of the key, `shape` the request's fingerprint for prompt caching."""

    call_id: str
    session: str
    run: str
    turn: int
    purpose: str
    provider: str
    model: str
    credential: str
    prefix: str
    messages: int
    bid: Bid
    shape: Shape = field(default_factory=Shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettled:
    """Ledger entry of an ended request: `outcome` is `ok`, `stopped`, or the class of the error; `cost` in US
    dollars, None: unknown."""

    call_id: str
    outcome: str
    usage: Usage
    cost: float | None
    seconds: float


class Ledger(Protocol):
    """Usage ledger of model calls.

    - `open` returns when the row is committed, with the call's reservation; raises `LimitReached`, without a row,
      where a limit does not cover it;
    - `complete` completes it; a row without that stays "unknown", which is not zero: it counts as its reservation;
    - `sizes` remembers providers' token counts of each conversation beyond one run.
    """

    @property
    def sizes(self) -> Sizes: ...

    async def open(self, call: CallOpened) -> Grant: ...

    async def complete(self, call: CallSettled) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """A compiled request before its reservation: `tokens` is the estimated size of its input."""

    request: ModelRequest
    compiler: ConversationCompiler
    tokens: int
    bid: Bid
    shape: Shape


class Endpoint:
    """Sends requests on one route under one credential, and caches the conversations that it compiled."""

    def __init__(self, route: Route, chain: Chain, ledger: Ledger) -> None:
        self.route = route
        self._chain = chain
        self._ledger = ledger
        self._dialect = dialect_of(route.dialect)
        self._compilers: OrderedDict[tuple[str, str], tuple[ConversationCompiler, CacheShape]] = OrderedDict()
        self._probes = MOST_PROBES if route.vendor.window_probe and chain.settings.window is None else 0

    async def prepare(self) -> None:
        """Refresh an old sign-in key, and ask a local server for the model's real window, at most twice (without an
        answer the catalogue's applies). Raises `AuthRefused` where the person must sign in again."""
        await self.renew()
        if not self._probes:
            return
        self._probes -= 1
        window = await real_window(self._chain.http, self.route)
        if window and window != self.route.facts.window:
            self.route = replace(self.route, facts=replace(self.route.facts, window=window))
            self._compilers.clear()

    async def renew(self, refused: str = "") -> bool:
        """Get a valid key; `refused` is one that the vendor rejected. Whether it is a different one."""
        route = await self.route.renewed(self._chain.http, refused=refused)
        if route is self.route:
            return False
        another = route.key != self.route.key
        self.route = route
        self._compilers.clear()
        return another

    def plan(self, request: ModelRequest) -> PreparedRequest:
        """The compiled request and its bid."""
        compiler, trail = self._compiler(request)
        compiler.take(request)
        tokens = self._ledger.sizes.most(self.route.name, request, compiler.tokens)
        bid = bid_of(self.route, request, tokens=tokens, configured=self._chain.settings.max_output)
        return PreparedRequest(
            request=request, compiler=compiler, tokens=compiler.tokens, bid=bid, shape=trail.shape(request)
        )

    async def attempt(self, plan: PreparedRequest, number: int) -> AsyncGenerator[Sequence[Delta] | Reply, None]:
        """Make the `number`th attempt of a request, recorded in the ledger before and after. Yields deltas in lists
        as they arrive together."""
        request, clock = plan.request, self._chain.clock
        left = self.left(request)
        if left is not None and left <= 0:
            raise failure(self.route, TimedOut, "was not asked: the deadline has passed.")
        call_id = f"{request.call_id}.{number}" if number > 1 else request.call_id
        granted = await self._ledger.open(self._opened(plan, call_id))
        started = clock.monotonic()
        settled = CallSettled(call_id=call_id, outcome="stopped", usage=Usage(known=False), cost=None, seconds=0.0)
        decoder = self._dialect.decoder(self.route, plan.compiler.call_ids, plan.compiler.names)
        wire = plan.compiler.write(request, granted.max_output)
        client = Client(self._chain.http, self.route, self._dialect)
        items = client.stream(wire, decoder, self._patience(request, left))
        try:
            async for item in items:
                if not isinstance(item, Finished):
                    yield item
                    continue
                reply = self._reply(item)
                settled = replace(settled, outcome="ok", usage=reply.usage, cost=reply.cost)
                self._ledger.sizes.learn(self.route.name, request, plan.tokens, reply.usage)
        except ProviderError as error:
            settled = self._failed(settled, error)
            raise
        finally:
            await items.aclose()
            settled = replace(settled, seconds=clock.monotonic() - started)
            self._note(request, settled)
            await self._ledger.complete(settled)
        yield reply

    def size(self, request: ModelRequest) -> int:
        """The estimated tokens of a request, without caching it."""
        compiler = self._dialect.compiler(self.route)
        compiler.take(request)
        return compiler.tokens

    def left(self, request: ModelRequest) -> float | None:
        """Seconds until the request's deadline; None without one."""
        return None if request.deadline is None else request.deadline - self._chain.clock.monotonic()

    def _compiler(self, request: ModelRequest) -> tuple[ConversationCompiler, CacheShape]:
        key = (request.session, request.purpose)
        kept = self._compilers.pop(key, None) or (self._dialect.compiler(self.route), CacheShape())
        self._compilers[key] = kept
        if len(self._compilers) > KEPT_CONVERSATIONS:
            self._compilers.popitem(last=False)
        return kept

    def _opened(self, plan: PreparedRequest, call_id: str) -> CallOpened:
        request = plan.request
        return CallOpened(
            call_id=call_id,
            session=request.session,
            run=request.run,
            turn=request.turn,
            purpose=request.purpose,
            provider=self.route.vendor.name,
            model=self.route.model,
            credential=self.route.credential,
            prefix=request.prefix.hash,
            messages=len(request.messages),
            bid=plan.bid,
            shape=plan.shape,
        )

    def _reply(self, finished: Finished) -> Reply:
        price = cost(self.route.facts.price, finished.usage)
        return Reply(
            message=Message(role=Role.ASSISTANT, parts=finished.parts),
            stop=finished.stop,
            usage=finished.usage,
            provider=self.route.vendor.name,
            model=self.route.model,
            cost=price if finished.cost is None else finished.cost,
        )

    def _note(self, request: ModelRequest, settled: CallSettled) -> None:
        """A line in the log for each request, whatever became of it."""
        usage, price = settled.usage, "" if settled.cost is None else f", ${settled.cost:.4f}"
        size = f", {usage.input} tokens in ({usage.cached} cached), {usage.output} out" if usage.known else ""
        log_of("models", session=request.session, run=request.run).log(
            logging.INFO if settled.outcome in {"ok", "stopped"} else logging.WARNING,
            "%s for %s: %s, %.1f s%s%s",
            *(self.route.name, request.purpose, settled.outcome, settled.seconds, size, price),
        )

    def _patience(self, request: ModelRequest, left: float | None) -> Patience:
        stall = self._chain.settings.stall_seconds * STALL_FACTOR.get(request.effort, 1.0)
        return Patience(left=left, stall=stall, now=self._chain.clock.now())

    def _failed(self, settled: CallSettled, error: ProviderError) -> CallSettled:
        """A request that was refused with an HTTP status, or never left, used nothing; what a broken stream used is
        unknown."""
        refused = error.status >= HTTPStatus.BAD_REQUEST and not error.partial
        if refused or isinstance(error.__cause__, self._chain.http.unsent):
            settled = replace(settled, usage=Usage(), cost=0.0)
        return replace(settled, outcome=type(error).__name__)


class CacheShape:
    """Fingerprints the requests of a growing conversation by hashes of its messages; unchanged messages at its
    beginning are not hashed again."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._hashes: list[str] = []

    def shape(self, request: ModelRequest) -> Shape:
        """The fingerprint of a request of this conversation."""
        hashes = self._follow(request.messages)
        return Shape(effort=request.effort, use_tools=request.use_tools, marks=marks_of(hashes))

    def _follow(self, messages: Sequence[Message]) -> list[str]:
        known = self._messages
        same = next(
            (place for place, (old, new) in enumerate(zip(known, messages, strict=False)) if old is not new),
            min(len(known), len(messages)),
        )
        del known[same:], self._hashes[same:]
        for message in messages[same:]:
            before = self._hashes[-1] if self._hashes else ""
            digest = hashlib.sha256(before.encode() + json_bytes(message)).hexdigest()[:HEX]
            self._hashes.append(digest)
            known.append(message)
        return self._hashes
