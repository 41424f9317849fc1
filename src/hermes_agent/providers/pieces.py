"""Building blocks of every dialect's messages: call ids, arguments, data URLs, JSON text."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ContentRefused, EmptyReply
from hermes_agent.core.messages import File, Image, Part, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.model import StopReason
from hermes_agent.providers.outcomes import failure
from hermes_agent.providers.route import Route
from hermes_agent.providers.wire import Finished

IMAGE_TOKENS = 1_600
BYTES_PER_TOKEN = 4
SHOWN_BROKEN = 4_000
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_encoder = msgspec.json.Encoder()


def json_bytes(value: object) -> bytes:
    """Compact JSON in UTF-8; lone surrogates, which JSON text may not contain, become U+FFFD."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mended(msgspec.to_builtins(value)))


def _mended(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {_mended(key): _mended(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mended(entry) for entry in value]
    return value


def safe_id(call_id: str) -> str:
    """The id if every provider accepts it (letters, digits, `_`, `-`, at most 64), otherwise a hash of it."""
    if _SAFE.fullmatch(call_id):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def nine_id(call_id: str) -> str:
    """The id if it is nine letters and digits, as some providers require, otherwise a hash of it."""
    if _NINE.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


class CallIds:
    """Gives each call of a reply an id that is unique in the conversation."""

    def __init__(self, taken: frozenset[str] | set[str]) -> None:
        self._taken = taken
        self._given: set[str] = set()

    def give(self, wanted: str) -> str:
        """`wanted` where it is unused and safe, otherwise a similar id."""
        base = safe_id(wanted) if wanted else "call"
        free, number = base, len(self._taken) + len(self._given) + 1
        while free in self._taken or free in self._given or not wanted:
            free, number, wanted = f"{base[:52]}_{number}", number + 1, base
        self._given.add(free)
        return free


def tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """A call with decoded arguments; what is not a JSON object is kept in `broken`."""
    if not arguments.strip():
        return ToolCall(id=call_id, name=name, arguments={})
    try:
        return ToolCall(id=call_id, name=name, arguments=msgspec.json.decode(arguments.encode(), type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return ToolCall(id=call_id, name=name, arguments={}, broken=arguments)


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The arguments to send back, which must be an object: broken ones are wrapped in one."""
    return {"broken_json": call.broken[:SHOWN_BROKEN]} if call.broken else call.arguments


def data_url(part: Image | File) -> str:
    """The URL of a picture or document: its own, or its bytes as a `data:` URL."""
    if isinstance(part, Image) and part.url:
        return part.url
    return f"data:{part.media_type};base64,{part.data}"


def written(part: File) -> str | None:
    """The text of a text document; None for others."""
    kind = part.media_type.partition(";")[0]
    if not (kind.startswith("text/") or kind in {"application/json", "application/xml", "application/yaml"}):
        return None
    try:
        words = base64.b64decode(part.data, validate=True).decode("utf-8", "replace")
    except binascii.Error:
        return None
    return f"[{part.name}]\n{words}"


def words_of(part: Part) -> str:
    """The text of a part; empty where it has none."""
    match part:
        case Text():
            return part.text
        case File():
            return written(part) or ""
        case _:
            return ""


def words_in(result: ToolResult) -> str:
    """The text of a tool's result."""
    return "\n\n".join(words for part in result.parts if (words := words_of(part)))


def attached(result: ToolResult) -> list[Image | File]:
    """The pictures and files of a tool's result."""
    return [part for part in result.parts if isinstance(part, (Image, File)) and not words_of(part)]


def estimate(encoded: bytes, parts: list[Part]) -> int:
    """Tokens of an encoded turn by bytes / 4; pictures and documents count with a fixed number instead of their
    base64."""
    attached = [part for part in parts if isinstance(part, (Image, File)) and part.data]
    size = len(encoded) - sum(len(part.data) for part in attached)
    return max(0, size) // BYTES_PER_TOKEN + IMAGE_TOKENS * len(attached)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A received answer before it is checked; `refusal` is the provider's reason for refusing."""

    finished: Finished
    refusal: str = ""


def whole(route: Route, answer: Answer) -> Finished:
    """The answer, if it has text or calls; otherwise raises."""
    finished = answer.finished
    if any(isinstance(part, ToolCall) or (isinstance(part, Text) and part.text.strip()) for part in finished.parts):
        return finished
    if finished.stop is StopReason.REFUSED:
        reason = f" ({answer.refusal})" if answer.refusal else ""
        raise failure(route, ContentRefused, f"refused to answer{reason}.")
    thought = any(isinstance(part, Thinking) for part in finished.parts)
    if finished.stop is StopReason.LENGTH:
        used = " by thinking" if thought else ""
        raise failure(
            route, EmptyReply, f"used its output limit up{used} before the first word. Raise `model.max_output`."
        )
    raise failure(route, EmptyReply, "ended its answer without a word. Try again.")
