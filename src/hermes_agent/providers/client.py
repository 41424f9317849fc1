"""One attempt of a model request: sends it and streams the answer under time limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import MalformedReply, ProviderError, Stalled, TimedOut, Unreachable
from hermes_agent.core.messages import Delta
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.providers.dialect import Dialect
from hermes_agent.providers.outcomes import Finished, Wire, failure, refused
from hermes_agent.providers.reading import ReplyReader
from hermes_agent.providers.route import Route

if TYPE_CHECKING:
    import httpx2

# What follows the end mark is waited for so long, so that the connection can be used again; then it is closed.
DRAIN_SECONDS = 0.05
LONGEST_REFUSAL = 1024 * 1024
LARGEST_REPLY = 256 * 1024 * 1024
"""Bytes of all events of an answer: each token of the longest ones comes in an event of some hundred."""
# Seconds after which a wait that did not end when it was cancelled is cancelled again.
AGAIN = 0.05

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits of an attempt: `left` seconds in all (None: no limit), `stall` seconds without content. `now` is
    seconds since 1970, for a Retry-After that is a date."""

    left: float | None
    stall: float
    now: float


class Client:
    """HTTP client of a model in its dialect: sends one request and yields the events of its answer."""

    def __init__(self, http: Http, route: Route, dialect: Dialect, *, largest: int = LARGEST_REPLY) -> None:
        self._largest = largest
        self._http = http
        self._route = route
        self._dialect = dialect

    async def stream(
        self, wire: Wire, decoder: ReplyReader[Any], patience: Patience
    ) -> AsyncGenerator[Sequence[Delta] | Finished, None]:
        """Yields deltas in lists as they arrive together, then the whole answer. Raises only `ProviderError`;
        closing it early closes the connection at once."""
        watch = _Watch(self._route, decoder, self._http.failures, patience)
        framing = self._dialect.framing()
        response = await watch.during(self._send(wire))
        try:
            if not _is_stream(response):
                raise await self._refusal(response, watch, patience.now)
            chunks = response.aiter_bytes()
            arrived, size = True, 0
            while arrived and not decoder.done:
                chunk = await watch.during(anext(chunks, None))
                arrived = chunk is not None
                events = framing.finish() if chunk is None else framing.feed(chunk)
                size += sum(map(len, events))
                if size > self._largest:
                    raise MalformedReply(f"The answer is more than {self._largest // 2**20} MB long.")
                deltas, broken = _heard(decoder, events)
                if deltas:
                    yield deltas
                if broken is not None:
                    raise broken
            finished = decoder.finish()
            await _drain(chunks, self._http.failures)
        except Unreachable:
            complete = _complete(decoder)
            if complete is None:
                raise
            finished = complete
        except MalformedReply as error:
            if error.provider:
                raise
            raise failure(self._route, MalformedReply, f"broke the protocol. {error}", partial=decoder.words) from error
        finally:
            watch.close()
            await response.aclose()
        yield finished

    async def _send(self, wire: Wire) -> httpx2.Response:
        route = self._route
        url = route.url(wire.path)
        signed = await late(route.vendor.sign)(route, url, wire) if route.vendor.sign and not route.key else {}
        client = self._http.client(url)
        request = client.build_request("POST", url, headers={**wire.headers, **signed}, content=wire.body)
        return await client.send(request, stream=True)

    async def _refusal(self, response: httpx2.Response, watch: _Watch, now: float) -> ProviderError:
        body = bytearray()
        chunks = response.aiter_bytes()
        while len(body) < LONGEST_REFUSAL:
            chunk = await watch.during(anext(chunks, None))
            if chunk is None:
                break
            body += chunk
        headers = {name.lower(): value for name, value in response.headers.items()}
        return refused(self._route, self._dialect.errors, response.status_code, headers, bytes(body), now=now)


def _is_stream(response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "")
    return response.status_code == 200 and "html" not in kind and not kind.startswith("application/json")


def _heard(decoder: ReplyReader[Any], events: Sequence[bytes]) -> tuple[list[Delta], ProviderError | None]:
    """What these events say, and the error that one of them is, which ends them."""
    deltas: list[Delta] = []
    try:
        for data in events:
            deltas += decoder.feed(data)
    except ProviderError as error:
        return deltas, error
    return deltas, None


def _complete(decoder: ReplyReader[Any]) -> Finished | None:
    """The answer where its end had arrived and only what follows it was lost."""
    try:
        return decoder.finish()
    except MalformedReply:
        return None


async def _drain(chunks: AsyncIterator[bytes], failures: tuple[type[Exception], ...]) -> None:
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in chunks:
                pass
    except TimeoutError:
        return
    except failures:
        return


class _Watch:
    """Times out a wait: at the deadline, or after too long without content. Keep-alives are no content.

    One timer serves all waits. It is not moved with each piece: when it fires, it checks for content since then
    and is set again. It is set again also when it cancels a wait: connection code cancels the task itself and
    takes that back, and ours can be lost among theirs.
    """

    def __init__(
        self, route: Route, decoder: ReplyReader[Any], failures: tuple[type[Exception], ...], patience: Patience
    ) -> None:
        self._route = route
        self._decoder = decoder
        self._failures = failures
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._alive = self._loop.time()
        self._end = float("inf") if patience.left is None else self._alive + patience.left
        self._content = 0
        self._waiting: asyncio.Task[object] | None = None
        self._before = 0
        self._strikes = 0
        self._timer: asyncio.TimerHandle | None = None

    async def during(self, step: Awaitable[T]) -> T:
        """Await one step under the limits; its result."""
        content = self._decoder.content
        if content != self._content:
            self._content = content
            self._alive = self._loop.time()
        if self._timer is None:
            self._alive = self._loop.time()  # while nobody waited, nothing could come
            self._before = 0 if (now := asyncio.current_task()) is None else now.cancelling()
            self._timer = self._loop.call_at(self._due, self._strike)
        task = self._waiting = asyncio.current_task()
        try:
            return await step
        except asyncio.CancelledError as error:
            self.close()
            # Somebody else may have cancelled the task as well: then it stays cancelled.
            if self._strikes and task is not None and self._taken_back(task) <= self._before:
                raise self._late() from error
            raise
        except self._failures as error:
            self.close()
            what = f"could not be reached or cut the connection ({str(error) or type(error).__name__})."
            advice = "Is the address (`model.base_url`) right, and the server running?"
            raise failure(self._route, Unreachable, f"{what} {advice}", partial=self._decoder.words) from error
        finally:
            self._waiting = None
            if self._strikes and task is not None:
                self._taken_back(task)

    def close(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _due(self) -> float:
        return min(self._alive + self._patience.stall, self._end)

    def _strike(self) -> None:
        self._timer = None
        if self._waiting is None:
            return  # the next wait sets it again
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._strike)
            return
        if self._waiting.cancelling() <= self._before + self._strikes:
            self._strikes += 1
            self._waiting.cancel()
        self._timer = self._loop.call_later(AGAIN, self._strike)

    def _taken_back(self, task: asyncio.Task[object]) -> int:
        """How often others have cancelled the task, when our own strikes no longer count."""
        while self._strikes:
            self._strikes -= 1
            task.uncancel()
        return task.cancelling()

    def _late(self) -> ProviderError:
        if self._loop.time() >= self._end:
            return failure(self._route, TimedOut, "did not answer before the deadline.", partial=self._decoder.words)
        quiet = f"sent nothing of an answer for {self._patience.stall:g} s. Try again, or raise `model.stall_seconds`."
        return failure(self._route, Stalled, quiet, partial=self._decoder.words)
