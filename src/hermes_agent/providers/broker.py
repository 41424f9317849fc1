"""The broker: every question to a model passes here, is written down, paid, watched, tried again and answered."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Protocol

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import AuthRefused, ProviderError, ThinkingRefused, TimedOut
from hermes_agent.core.messages import Message, Role
from hermes_agent.core.model import Delta, ModelRequest, Reply, Retrying, Usage
from hermes_agent.core.spending import Bid, Grant
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.providers.budget import Sizes, bid_of
from hermes_agent.providers.catalog import cost
from hermes_agent.providers.dialect import Compiler, Dialect, Finished
from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.providers.exchange import Exchange, Patience
from hermes_agent.providers.outcomes import failure
from hermes_agent.providers.route import Route
from hermes_agent.providers.routing import Attempts, GiveUp, decide
from hermes_agent.providers.settings import ModelSettings

# Conversations whose compiled requests are kept; the least recently asked one is compiled anew when it goes on.
KEPT_CONVERSATIONS = 32
STALL_FACTOR = {"high": 2.0, "xhigh": 4.0, "max": 4.0}
# Before the first question, and once more before the second one: by then the server has loaded the model and knows.
MOST_PROBES = 2
REAL_WINDOW = "hermes_agent.providers.windows:real_window"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOpened:
    """A request that is about to be sent, and what it asks for. A further attempt has `call_id` + `.2`, `.3`, ..."""

    call_id: str
    session: str
    run: str
    turn: int
    purpose: str
    provider: str
    model: str
    prefix: str
    messages: int
    bid: Bid


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettled:
    """How it ended: `outcome` is `ok`, `stopped`, or the class of the error; `cost` in US dollars, None:
    unknown."""

    call_id: str
    outcome: str
    usage: Usage
    cost: float | None
    seconds: float


class Ledger(Protocol):
    """The book of all calls.

    - `open` returns when the row is committed, with what is reserved for the call; raises `LimitReached`, without a
      row, where a limit does not pay for it;
    - `settle` completes it; a row that is never settled stays "unknown", never zero: it counts as what was reserved;
    - `sizes` remembers, beyond one run, what providers have counted of each conversation.
    """

    @property
    def sizes(self) -> Sizes: ...

    async def open(self, call: CallOpened) -> Grant: ...

    async def settle(self, call: CallSettled) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A request ready to be paid: `tokens` is the estimated size of its input."""

    compiler: Compiler
    tokens: int
    bid: Bid


class Broker:
    """One model, behind the book and the limits: implements `core.model.Model`."""

    def __init__(
        self,
        route: Route,
        *,
        ledger: Ledger,
        http: Http,
        clock: Clock,
        settings: ModelSettings,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._route = route
        self._ledger = ledger
        self._http = http
        self._clock = clock
        self._settings = settings
        self._chance = chance
        self._dialect: Dialect = late(DIALECTS[route.dialect])
        self._compilers: OrderedDict[tuple[str, str], Compiler] = OrderedDict()
        self._probes = MOST_PROBES if route.vendor.window_probe and settings.window is None else 0

    @property
    def name(self) -> str:
        """`vendor/model`."""
        return self._route.name

    @property
    def window(self) -> int:
        """Tokens of context; of a local server the real ones once `prepare` or `ask` has been called."""
        return self._route.facts.window

    async def prepare(self) -> None:
        """Renew the key of a sign-in where it is old; ask a local server for the model's real window, at most twice:
        silence leaves the catalogue's."""
        await self._renew()
        if not self._probes:
            return
        self._probes -= 1
        window = await late(REAL_WINDOW)(self._http, self._route)
        if window and window != self._route.facts.window:
            self._route = replace(self._route, facts=replace(self._route.facts, window=window))
            self._compilers.clear()

    async def _renew(self, refused: str = "") -> None:
        """Take a key that can be used now; `refused` is one that the vendor did not take."""
        route = await self._route.renewed(self._http, refused=refused)
        if route is not self._route:
            self._route = route
            self._compilers.clear()

    async def _with_another_key(self, error: ProviderError, made: int) -> Retrying | None:
        """One more attempt where the key of a sign-in was not taken, as one that was revoked; None where that is not
        it. Raises `AuthRefused` where the person must sign in again."""
        if not isinstance(error, AuthRefused) or error.status != HTTPStatus.UNAUTHORIZED or made > 1:
            return None
        if self._route.source is None:
            return None
        refused = self._route.key
        await self._renew(refused=refused)
        if self._route.key == refused:
            return None
        return Retrying(reason=str(error), attempt=made, delay=0.0)

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`; also raises `LimitReached` where a limit does not even pay for the question."""
        await self.prepare()
        plan = self._plan(request)
        made = 0
        while True:
            items = self._attempt(request, plan, made)
            try:
                async for item in items:
                    yield item
                return
            except ProviderError as error:
                made += 1
                again = await self._with_another_key(error, made) or self._again(error, request, made)
                if isinstance(error, ThinkingRefused):
                    plan.compiler.forget()
            finally:
                await items.aclose()
            yield again
            await self._clock.sleep(again.delay)
            plan = self._plan(request)

    def _again(self, error: ProviderError, request: ModelRequest, made: int) -> Retrying:
        """The next attempt after `made` failed ones; raises the error, with a note why, where there is none."""
        attempts = Attempts(made=made, left=self._left(request))
        decision = decide(error, attempts, max_retries=self._settings.max_retries, chance=self._chance())
        if isinstance(decision, GiveUp):
            error.add_note(decision.reason)
            raise error
        return Retrying(reason=str(error), attempt=made, delay=decision.delay)

    def _plan(self, request: ModelRequest) -> _Plan:
        compiler = self._compiler(request)
        compiler.take(request)
        tokens = self._ledger.sizes.most(self.name, request, compiler.tokens)
        bid = bid_of(self._route, request, tokens=tokens, configured=self._settings.max_output)
        return _Plan(compiler=compiler, tokens=compiler.tokens, bid=bid)

    def _compiler(self, request: ModelRequest) -> Compiler:
        key = (request.session, request.purpose)
        compiler = self._compilers.pop(key, None) or self._dialect.compiler(self._route)
        self._compilers[key] = compiler
        if len(self._compilers) > KEPT_CONVERSATIONS:
            self._compilers.popitem(last=False)
        return compiler

    async def _attempt(self, request: ModelRequest, plan: _Plan, made: int) -> AsyncGenerator[Delta | Reply, None]:
        left = self._left(request)
        if left is not None and left <= 0:
            raise failure(self._route, TimedOut, "was not asked: the deadline has passed.")
        call_id = f"{request.call_id}.{made + 1}" if made else request.call_id
        granted = await self._ledger.open(self._opened(request, call_id, plan.bid))
        started = self._clock.monotonic()
        settled = CallSettled(call_id=call_id, outcome="stopped", usage=Usage(known=False), cost=None, seconds=0.0)
        decoder = self._dialect.decoder(self._route, plan.compiler.call_ids, plan.compiler.names)
        wire = plan.compiler.write(request, granted.max_output)
        exchange = Exchange(self._http, self._route, self._dialect)
        items = exchange.stream(wire, decoder, self._patience(request, left))
        try:
            async for item in items:
                if not isinstance(item, Finished):
                    yield item
                    continue
                reply = self._reply(item)
                settled = replace(settled, outcome="ok", usage=reply.usage, cost=reply.cost)
                self._ledger.sizes.learn(self.name, request, plan.tokens, reply.usage)
        except ProviderError as error:
            settled = self._failed(settled, error)
            raise
        finally:
            await items.aclose()
            await self._ledger.settle(replace(settled, seconds=self._clock.monotonic() - started))
        yield reply

    def _opened(self, request: ModelRequest, call_id: str, bid: Bid) -> CallOpened:
        return CallOpened(
            call_id=call_id,
            session=request.session,
            run=request.run,
            turn=request.turn,
            purpose=request.purpose,
            provider=self._route.vendor.name,
            model=self._route.model,
            prefix=request.prefix.hash,
            messages=len(request.messages),
            bid=bid,
        )

    def _reply(self, finished: Finished) -> Reply:
        price = cost(self._route.facts.price, finished.usage)
        return Reply(
            message=Message(role=Role.ASSISTANT, parts=finished.parts),
            stop=finished.stop,
            usage=finished.usage,
            provider=self._route.vendor.name,
            model=self._route.model,
            cost=price if finished.cost is None else finished.cost,
        )

    def _patience(self, request: ModelRequest, left: float | None) -> Patience:
        stall = self._settings.stall_seconds * STALL_FACTOR.get(request.effort, 1.0)
        return Patience(left=left, stall=stall, now=self._clock.now())

    def _left(self, request: ModelRequest) -> float | None:
        return None if request.deadline is None else request.deadline - self._clock.monotonic()

    def _failed(self, settled: CallSettled, error: ProviderError) -> CallSettled:
        """A request that was refused with an HTTP status, or never left, used nothing; what a broken stream used is
        unknown."""
        refused = error.status >= HTTPStatus.BAD_REQUEST and not error.partial
        if refused or isinstance(error.__cause__, self._http.unsent):
            settled = replace(settled, usage=Usage(), cost=0.0)
        return replace(settled, outcome=type(error).__name__)
