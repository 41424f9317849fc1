"""What a provider's reply comes down to: names and framing of its stream, and its errors as exceptions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import (
    AuthRefused,
    BadRequest,
    ContentRefused,
    ContextTooLong,
    MalformedReply,
    ModelNotFound,
    OutOfCredit,
    Overloaded,
    PayloadTooLarge,
    ProviderError,
    RateLimited,
    ServerFailed,
    ThinkingRefused,
    TimedOut,
)
from hermes_agent.core.messages import StopReason, Text, Thinking, ToolCall, Usage
from hermes_agent.providers.route import Route

Table = Mapping[str, type[ProviderError]]
Taken = frozenset[str] | set[str]
Names = Mapping[str, str]
NO_NAMES: Names = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """An encoded request: `path` follows the route's base URL, `body` is JSON in UTF-8."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A model's whole answer as decoded by a dialect. `cost` is in US dollars where the provider reported it."""

    parts: tuple[Text | Thinking | ToolCall, ...]
    stop: StopReason
    usage: Usage
    cost: float | None = None


class Framing(Protocol):
    """Splits the response's bytes into events.

    - `feed` returns the data of the events that the bytes complete;
    - `finish` returns what the end of the stream completes;
    - raises only `MalformedReply`.
    """

    def feed(self, chunk: bytes) -> list[bytes]: ...

    def finish(self) -> list[bytes]: ...


SHOWN = 300
# Where AWS says what kind of error it is: "ThrottlingException", an address may follow.
KIND_HEADER = "x-amzn-errortype"
NO_STATUS = frozenset({0, 200})
WORDY_STATUS = NO_STATUS | {400, 403, 404, 413, 422}
Failure = TypeVar("Failure", bound=ProviderError)

BY_STATUS: Mapping[int, type[ProviderError]] = {
    400: BadRequest,
    401: AuthRefused,
    402: OutOfCredit,
    403: AuthRefused,
    404: ModelNotFound,
    407: AuthRefused,
    408: TimedOut,
    413: PayloadTooLarge,
    422: BadRequest,
    424: ServerFailed,
    429: RateLimited,
    503: Overloaded,
    504: TimedOut,
    529: Overloaded,
}

OPENAI_ERRORS: Table = {
    "billing_hard_limit_reached": OutOfCredit,
    "billing_not_active": OutOfCredit,
    "content_filter": ContentRefused,
    "content_policy_violation": ContentRefused,
    "context_length_exceeded": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "insufficient_quota": OutOfCredit,
    "image_content_policy_violation": ContentRefused,
    "invalid_api_key": AuthRefused,
    "invalid_encrypted_content": ThinkingRefused,
    "model_not_found": ModelNotFound,
    "overloaded": Overloaded,
    "overloaded_error": Overloaded,
    "rate_limit_exceeded": RateLimited,
    "server_error": ServerFailed,
    "server_is_overloaded": Overloaded,
    "slow_down": RateLimited,
    "usage_limit_reached": RateLimited,
    "usage_not_included": OutOfCredit,
}
"""The kinds and codes of errors as OpenAI names them, and everybody who speaks one of its protocols."""

# Providers tell these cases apart in words alone: a 400 of any of them may be one. Compiled with the first such answer.
BY_WORDS: tuple[tuple[str, type[ProviderError]], ...] = (
    (
        (
            r"(?s)invalid .?signature.? in .?thinking|thinking.{0,60}blocks.{0,60}cannot be modified"
            r"|(thought|thinking).?signature.{0,40}(not valid|invalid|missing|corrupt)"
            r"|(invalid|missing|corrupt\w*).{0,12}thought.?signature"
            r"|encrypted.content.{0,200}could not be (verified|decrypted|parsed)"
            r"|of type .?reasoning.? was provided without|without its required .?reasoning.? item"
        ),
        ThinkingRefused,
    ),
    (
        (
            r"context.{0,12}(length|window|size)|prompt is too long|input is too long|too many (input )?tokens"
            r"|maximum (input|prompt) length|exceed\w* the (model's )?(context|available context)"
            r"|input length and .?max_tokens|input token count .{0,40}exceeds"
        ),
        ContextTooLong,
    ),
    (
        r"credit balance|insufficient (credit|quota|balance|funds)|exceeded your current quota|billing",
        OutOfCredit,
    ),
    (
        r"(not a valid model|model identifier is invalid|model .{0,80}(not exist|not found|not supported))",
        ModelNotFound,
    ),
    (r"request.{0,20}too large|payload too large|entity too large", PayloadTooLarge),
    (r"content (management )?policy|content filter|safety system|flagged", ContentRefused),
    (r"(invalid|incorrect|missing) .{0,20}api.?key", AuthRefused),
)

ADVICE: Mapping[type[ProviderError], str] = {
    AuthRefused: "Check the key ({keys}) and what it may use; `hermes setup` replaces it.",
    OutOfCredit: "Add credit to the account or choose another model with `hermes model`.",
    RateLimited: "Wait, or raise the account's limit.",
    Overloaded: "Try again in a while or choose another model.",
    ServerFailed: "Try again in a while.",
    TimedOut: "Try again.",
    ContextTooLong: "The conversation must be shortened: `/compress`, or a model with a larger window.",
    PayloadTooLarge: "Send fewer or smaller pictures and files.",
    ModelNotFound: "Check `model.default` and `model.base_url`; `hermes model list` lists what there is.",
    ContentRefused: "Put it in other words, or choose another model.",
    BadRequest: "",
    ThinkingRefused: "",
    MalformedReply: "Check `model.base_url`: does an API answer there, and no web page or proxy?",
}


SIGNED_ADVICE = "Check the credentials that it was asked with, and what they may do."


class _Detail(msgspec.Struct):
    """An error object. `status` and `details` are those of google.rpc.Status: a code by name, and typed additions."""

    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    status: Any = None
    details: Any = None


class _Body(msgspec.Struct):
    error: _Detail | str | None = None
    message: str | None = None
    detail: Any = None


def refused(
    route: Route, errors: Table, status: int, headers: Mapping[str, str], body: bytes, now: float
) -> ProviderError:
    """The exception for an error response. `now` is seconds since 1970, for a Retry-After that is a date."""
    if _is_page(headers, body):
        return _web_page(route, status)
    if 300 <= status < 400:
        where = headers.get("location", "nowhere")
        return failure(
            route, BadRequest, f"redirects to {where}. Set `model.base_url` to where the API is.", status=status
        )
    detail = _detail(body)
    if status == 200 and detail.message is None:
        return failure(route, MalformedReply, "answered with one document instead of a stream.", status=status)
    detail.type = detail.type or headers.get(KIND_HEADER, "").partition(":")[0] or None
    error = reported(route, errors, detail, status=status)
    said = retry_after(headers, now)
    error.retry_after = error.retry_after if said is None else said
    if error.retry_after is not None and error.retry_after >= 1:
        error.args = (f"{error} It asks to be left alone for {lasting(error.retry_after)}.",)
    return error


def lasting(seconds: float) -> str:
    """A duration in words, in seconds, minutes or hours."""
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def reported(route: Route, errors: Table, detail: _Detail, *, status: int = 0) -> ProviderError:
    """The exception for an error object, in a body or in a stream."""
    if not status and isinstance(detail.code, int):
        status = detail.code
    kind = _kind(errors, detail, status)
    what = f"{detail.message or detail.type or 'no reason given'}"
    if route.key:
        what = what.replace(route.key, "***")
    what = what if len(what) <= SHOWN else f"{what[:SHOWN]}..."
    code = f" ({status})" if status else ""
    error = failure(route, kind, f"refused{code}: {what.rstrip('. ')}.", status=status)
    error.retry_after = next(
        (delay for addition in _additions(detail) if (delay := _delay(addition)) is not None), None
    )
    return error


def failure(route: Route, kind: type[Failure], what: str, *, status: int = 0, partial: str = "") -> Failure:
    """An exception of this route: "vendor/model at host (name of the key)" + `what` + what to do."""
    keys = route.credential or ", ".join(route.vendor.key_names) or "none is configured"
    advice = ADVICE.get(kind, "").format(keys=keys)
    if kind is AuthRefused and route.vendor.sign and not route.key:
        advice = SIGNED_ADVICE
    if kind is AuthRefused and route.source is not None:
        advice = f"`hermes login {route.vendor.name}` signs in again."
    key = f" ({route.credential})" if route.credential else ""
    sentence = f"{route.name} at {route.host}{key} {what} {advice}".rstrip()
    error = kind(sentence, provider=route.vendor.name, model=route.model, status=status, partial=partial)
    error.credential = route.credential
    return error


def read_detail(plain: bytes | msgspec.Raw) -> _Detail:
    """Parses an error object in a stream, in any of its shapes."""
    try:
        return msgspec.json.decode(plain, type=_Detail)
    except msgspec.MsgspecError:
        return _Detail(message=bytes(plain).decode("utf-8", "replace"))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` as seconds or as an HTTP date; None where neither
    says."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    seconds = _number(said)
    if seconds is not None or not said:
        return seconds
    try:
        moment: datetime = parsedate_to_datetime(said)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - now)


def _additions(detail: _Detail) -> list[dict[str, Any]]:
    return [entry for entry in detail.details if isinstance(entry, dict)] if isinstance(detail.details, list) else []


def _delay(addition: dict[str, Any]) -> float | None:
    """Seconds of a google.rpc.RetryInfo: "34s" or "0.5s"."""
    said = addition.get("retryDelay")
    return _number(said.removesuffix("s")) if isinstance(said, str) else None


def _number(said: str | None) -> float | None:
    try:
        number = float(said or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _kind(errors: Table, detail: _Detail, status: int) -> type[ProviderError]:
    reasons = [addition.get("reason") for addition in _additions(detail)]
    for name in (*reasons, detail.code, detail.type, detail.status):
        kind = errors.get(name) if isinstance(name, str) else None
        # "It failed" says less than an HTTP status does.
        if kind is not None and (kind is not ServerFailed or status in NO_STATUS):
            return kind
    if status in WORDY_STATUS:
        for words, kind in BY_WORDS:
            if re.search(words, detail.message or "", re.IGNORECASE):
                return kind
    if status in BY_STATUS:
        return BY_STATUS[status]
    return BadRequest if 400 <= status < 500 else ServerFailed


def _detail(body: bytes) -> _Detail:
    try:
        parsed = msgspec.json.decode(body, type=_Body | list[_Body])
    except msgspec.MsgspecError:
        return _Detail(message=" ".join(body[: 2 * SHOWN].decode("utf-8", "replace").split()))
    first = (parsed[0] if parsed else _Body()) if isinstance(parsed, list) else parsed
    if isinstance(first.error, _Detail):
        return first.error
    return _Detail(message=first.error or first.message or (str(first.detail) if first.detail else None))


def _is_page(headers: Mapping[str, str], body: bytes) -> bool:
    return "html" in headers.get("content-type", "") or body.lstrip()[:9].lower().startswith((b"<!doctype", b"<html"))


def _web_page(route: Route, status: int) -> ProviderError:
    kind: type[ProviderError] = MalformedReply
    if status >= 500:
        kind = BY_STATUS.get(status, ServerFailed)
    elif status in {401, 407, 429}:
        kind = BY_STATUS[status]
    what = f"answered with a web page instead of the API ({status})."
    return failure(
        route, kind, f"{what} {ADVICE[MalformedReply]}" if kind is not MalformedReply else what, status=status
    )
