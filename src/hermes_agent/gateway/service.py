"""HTTP client for platform APIs: one call with its answer, failures mapped to channel errors, and uploads of files."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_agent.core.chat import Attachment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import ChannelError, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.host.http import Http

if TYPE_CHECKING:
    import httpx2

PIECE = 1_000_000
KIND = re.compile(r"[\w.+-]+/[\w.+-]+")
SIGNS = re.compile(r'["\\\r\n]')


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A request body with a file, streamed from disk between the byte strings `before` and `after`; `size` in bytes."""

    path: Path
    size: int
    media_type: str
    before: bytes = b""
    after: bytes = b""

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body in chunks. Raises `OSError` if the file can no longer be read."""
        yield self.before
        with await asyncio.to_thread(self.path.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece
        yield self.after


async def bytes_of(file: Attachment) -> bytes:
    """The content of an outgoing file. Raises `NeverHere`."""
    try:
        return await asyncio.to_thread(Path(file.path).read_bytes)
    except OSError as error:
        raise unreadable(file.name, error) from error


async def upload(file: Attachment) -> Upload:
    """A body of only the file. Raises `NeverHere`."""
    path = Path(file.path)
    try:
        with await asyncio.to_thread(path.open, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
    except OSError as error:
        raise unreadable(file.name, error) from error
    kind = file.media_type if KIND.fullmatch(file.media_type) else "application/octet-stream"
    return Upload(path=path, size=size, media_type=kind)


async def form(field: str, file: Attachment, values: Mapping[str, Any]) -> Upload:
    """A multipart form with a file; values that are not text are written as JSON. Raises `NeverHere`."""
    body, mark = await upload(file), secrets.token_hex(16)
    parts = [
        f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{_written(value)}\r\n'
        for name, value in values.items()
    ]
    head = f'--{mark}\r\nContent-Disposition: form-data; name="{field}"; filename="{SIGNS.sub("_", file.name)}"\r\n'
    before = f"{''.join(parts)}{head}Content-Type: {body.media_type}\r\n\r\n".encode()
    after = f"\r\n--{mark}--\r\n".encode()
    return Upload(
        path=body.path,
        size=len(before) + body.size + len(after),
        media_type=f"multipart/form-data; boundary={mark}",
        before=before,
        after=after,
    )


def unreadable(name: str, error: OSError) -> NeverHere:
    """The error for an outgoing file that cannot be read."""
    return NeverHere(f"The file {name} cannot be read: {error.strerror}.")


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


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
    """Answer of a platform's HTTP API, with a status below 500 other than 401 and 429. Header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def values(self) -> dict[str, Any]:
        """The JSON object of the body. Raises `OutcomeUnknown` if it is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise OutcomeUnknown("The answer cannot be read.")
        return found

    @property
    def fields(self) -> dict[str, Any]:
        """The JSON object of the body; empty if it is none."""
        try:
            return self.values()
        except OutcomeUnknown:
            return {}


def judged(answer: Answer, title: str) -> Answer:
    """Raise the error for status 401, 429 or 5xx; otherwise return the answer."""
    if answer.status == 429:
        raise NotNow(f"{title} wants to be asked later.", retry_after=seconds(answer))
    if answer.status >= 500:
        raise NotNow(f"{title} failed ({answer.status}).")
    if answer.status == 401:
        raise TokenRefused(f"{title} does not know the token any more.")
    return answer


def refusal(answer: Answer) -> ChannelError:
    """The default error for a status of 400 and above."""
    return NeverHere(f"It is refused ({answer.status}): {answer.body[:200].decode('utf-8', 'replace')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """HTTP client for one platform's API with the token in `headers`. `reads` marks calls without side effects, whose
    lost answer is a plain failure; `judge` checks every answer's status, `meaning` maps an error answer for `ask`."""

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
        """Make a request; a body longer than `most` bytes is cut just above that. Raises `NotNow`, `OutcomeUnknown`,
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
        """Call a path under `base` and return its JSON object; empty without a body. Raises `ChannelError`, that of
        `meaning` for a status of 400 and above."""
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
        """Stream JSON objects, one a line. Raises `NotNow`, also after `silence` seconds without a line, and
        `TokenRefused`."""
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

    async def fetch(self, url: str, most: int) -> bytes:
        """Download a file as `Channel.fetch` does. Raises `ChannelError`."""
        answer = await self.call("GET", url, reads=True, most=most, patience=FETCH_SECONDS)
        if answer.status != 200:
            raise NeverHere(f"{self.title} does not give the file out ({answer.status}).")
        return answer.body

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
    """The response body, cut just above `most` bytes."""
    found = bytearray()
    async for piece in response.aiter_bytes():
        found += piece
        if len(found) > most:
            break
    return bytes(found)


def named(error: Exception) -> str:
    """The error's message, or its class name if empty."""
    return str(error) or type(error).__name__


def seconds(answer: Answer) -> float:
    """The `Retry-After` delay; one second if it is no number."""
    try:
        return max(0.0, float(answer.headers.get("retry-after", "1")))
    except ValueError:
        return 1.0
