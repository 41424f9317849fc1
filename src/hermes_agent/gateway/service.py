"""A platform's HTTP interface: one call, its answer as bytes, and what a failure means for what was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import ChannelError, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.upload import Upload
from hermes_agent.host.http import Http

if TYPE_CHECKING:
    import httpx2

MOST_ANSWER = 64_000_000
"""Bytes of an answer that is no file."""
ANSWER_SECONDS = 55.0
"""The longest that a platform may take for an answer; the gateway gives up on a call a little later."""
UPLOAD_SECONDS = 275.0
"""The same where a file goes out with the question."""
FETCH_SECONDS = 600.0
"""The longest that one file may take that came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back: below 500, and neither 401 nor 429. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def values(self) -> dict[str, Any]:
        """The JSON object in it. Raises `OutcomeUnknown` where it is none: something was done, nobody knows what."""
        try:
            found = json.loads(self.body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise OutcomeUnknown("The answer cannot be read.")
        return found

    @property
    def fields(self) -> dict[str, Any]:
        """The JSON object in it, an empty one where it is none."""
        try:
            return self.values()
        except OutcomeUnknown:
            return {}


def judged(answer: Answer, title: str) -> Answer:
    """The answer, unless its status says all of it."""
    if answer.status == 429:
        raise NotNow(f"{title} wants to be asked later.", retry_after=seconds(answer))
    if answer.status >= 500:
        raise NotNow(f"{title} failed ({answer.status}).")
    if answer.status == 401:
        raise TokenRefused(f"{title} does not know the token any more.")
    return answer


def refusal(answer: Answer) -> ChannelError:
    """What an answer from 400 on means where nobody knows better."""
    return NeverHere(f"It is refused ({answer.status}): {answer.body[:200].decode('utf-8', 'replace')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One platform, by the token in `headers`. `reads` marks a call that changes nothing, so that its lost answer is
    only a failure; `judge` raises what the status of any answer means, `meaning` is that of a refusal, for `ask`."""

    title: str
    http: Http
    headers: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    judge: Callable[[Answer, str], Answer] = judged
    meaning: Callable[[Answer], ChannelError] = refusal

    async def call(  # noqa: PLR0913  what one request is
        self,
        method: str,
        url: str,
        *,
        content: Mapping[str, Any] | bytes | Upload | None = None,
        media_type: str = "application/json; charset=utf-8",
        reads: bool = False,
        most: int = MOST_ANSWER,
        patience: float = ANSWER_SECONDS,
    ) -> Answer:
        """Ask; of a body of more than `most` bytes comes what shows that. Raises `NotNow`, `OutcomeUnknown`,
        `TokenRefused`."""
        body: bytes | AsyncIterator[bytes] | None
        headers = dict(self.headers)
        if isinstance(content, Upload):
            headers |= {"Content-Type": content.media_type, "Content-Length": str(content.size)}
            body, patience = content.pieces(), max(patience, UPLOAD_SECONDS)
        else:
            body = json.dumps(content).encode() if isinstance(content, Mapping) else content
            headers |= {"Content-Type": media_type} if body is not None else {}
        try:
            async with asyncio.timeout(patience):
                asked = self.http.client(url).stream(method, url, content=body, headers=headers)
                async with asked as got:
                    found = await body_of(got, most)
        except self.http.unsent as error:
            raise NotNow(f"{self.title} cannot be reached: {named(error)}") from error
        except self._lost as error:
            if reads:
                raise NotNow(f"{self.title} did not answer: {named(error)}") from error
            raise OutcomeUnknown(f"{self.title} did not answer: {named(error)}") from error
        return self.judge(Answer(status=got.status_code, headers=got.headers, body=found), self.title)

    async def ask(
        self, method: str, path: str, content: Mapping[str, Any] | Upload | None = None, *, reads: bool = False
    ) -> dict[str, Any]:
        """The JSON object that a call behind `base` is answered with; an empty one where there is no answer. Raises
        `ChannelError`, what `meaning` says of an answer from 400 on."""
        answer = await self.call(method, f"{self.base}/{path}", content=content, reads=reads)
        if answer.status >= 400:
            raise self.meaning(answer)
        try:
            return answer.values() if answer.body else {}
        except OutcomeUnknown as error:
            if reads:
                raise NotNow(f"{self.title} answers what is no answer: {error}") from error
            raise

    async def lines(self, url: str, silence: float) -> AsyncGenerator[dict[str, Any], None]:
        """The JSON objects of a stream, one a line, until it ends. Raises `NotNow`, also after so many seconds of
        silence, and `TokenRefused`."""
        try:
            async with self.http.client(url).stream("GET", url, headers=self.headers) as got:
                self.judge(Answer(status=got.status_code, headers=got.headers, body=b""), self.title)
                if got.status_code >= 400:
                    raise TokenRefused(f"{self.title} lets nobody listen ({got.status_code}).")
                async for line in _lines(got, silence):
                    found = json.loads(line or "{}")
                    yield found if isinstance(found, dict) else {}
        except ValueError as error:
            raise NotNow(f"{self.title} tells what is not JSON.") from error
        except self._lost as error:
            raise NotNow(f"{self.title} ended the stream: {named(error)}") from error

    async def fetch(self, url: str, most: int) -> Answer:
        """A file that came, as `Channel.fetch` says."""
        return await self.call("GET", url, reads=True, most=most, patience=FETCH_SECONDS)

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        return (*self.http.failures, TimeoutError)


async def _lines(response: httpx2.Response, silence: float) -> AsyncIterator[str]:
    lines = response.aiter_lines()
    while True:
        async with asyncio.timeout(silence):
            line = await anext(lines, None)
        if line is None:
            return
        yield line


async def body_of(response: httpx2.Response, most: int) -> bytes:
    """The body of an answer; where it is longer than `most`, its beginning, which is longer too."""
    found = bytearray()
    async for piece in response.aiter_bytes():
        found += piece
        if len(found) > most:
            break
    return bytes(found)


def named(error: Exception) -> str:
    """What an error says; its kind where it says nothing."""
    return str(error) or type(error).__name__


def seconds(answer: Answer) -> float:
    """After how long a platform wants to be asked again; one second where it does not say it in figures."""
    try:
        return max(0.0, float(answer.headers.get("retry-after", "1")))
    except ValueError:
        return 1.0
