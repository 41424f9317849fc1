"""Decoder of the AWS event stream: binary messages with typed headers and two checksums, into JSON texts named by kind.

The format: https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html. It is decoded here and not by botocore
so that a request with a bearer key needs no botocore at all.
"""

from __future__ import annotations

import struct
from zlib import crc32

from hermes_agent.core.errors import MalformedReply
from hermes_agent.providers.reading import json_bytes

PRELUDE = struct.Struct("!III")  # length of the message, length of its headers, checksum of both
CHECKSUM = 4
LARGEST = 24 * 1024 * 1024  # what botocore takes
# Bytes of a header's value by its type; texts and byte strings begin with their length.
FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
LENGTH_FIRST = frozenset({6, 7})
TEXT = 7


class EventStreamDecoder:
    """Splits the stream into `{"KIND": payload}`; an exception or error becomes `{"error": {"type", "message"}}`."""

    __slots__ = ("_data", "_names")

    def __init__(self) -> None:
        self._data = b""
        self._names: dict[bytes, tuple[bytes, bytes]] = {}  # a stream repeats a handful of headers

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that this chunk completes; `MalformedReply` for a wrong checksum or a message that is too long."""
        data = self._data + chunk if self._data else chunk
        events: list[bytes] = []
        start = 0
        while len(data) - start >= PRELUDE.size:
            length, headers, checksum = PRELUDE.unpack_from(data, start)
            if crc32(data[start : start + 8]) != checksum:
                raise MalformedReply("The event stream's checksum is wrong.")
            if not PRELUDE.size + headers + CHECKSUM <= length <= LARGEST:
                raise MalformedReply(f"The event stream holds a message of {length} bytes.")
            if len(data) - start < length:
                break
            events.append(self._event(data[start : start + length], PRELUDE.size + headers))
            start += length
        self._data = data[start:]
        return events

    def finish(self) -> list[bytes]:
        """Nothing: an incomplete message yields no event."""
        return []

    def _event(self, message: bytes, begin: int) -> bytes:
        end = len(message) - CHECKSUM
        if crc32(message[:end]) != int.from_bytes(message[end:]):
            raise MalformedReply("The event stream's checksum is wrong.")
        headers = message[PRELUDE.size : begin]
        wrap = self._names.get(headers)
        if wrap is None:
            wrap = self._names[headers] = _wrapping(_read_headers(headers))
        return wrap[0] + (message[begin:end] or b"{}") + wrap[1]


def _wrapping(headers: dict[str, str]) -> tuple[bytes, bytes]:
    """What stands before and after a payload so that it says what it is."""
    match headers.get(":message-type"):
        case "exception":
            kind = headers.get(":exception-type", "")
            return b'{"error":{"type":' + json_bytes(kind[:1].upper() + kind[1:]) + b',"of":', b"}}"
        case "error":
            told = {"type": headers.get(":error-code", ""), "message": headers.get(":error-message", "")}
            return b'{"error":' + json_bytes(told) + b',"of":', b"}"
        case _:
            return b"{" + json_bytes(headers.get(":event-type", "")) + b":", b"}"


def _read_headers(data: bytes) -> dict[str, str]:
    """The headers whose value is text."""
    found: dict[str, str] = {}
    place = 0
    try:
        while place < len(data):
            named = place + 1 + data[place]
            kind, begin = data[named], named + 1
            if kind in LENGTH_FIRST:
                begin, size = begin + 2, int.from_bytes(data[begin : begin + 2])
            else:
                size = FIXED[kind]
            if kind == TEXT:
                found[data[place + 1 : named].decode()] = data[begin : begin + size].decode()
            place = begin + size
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise MalformedReply("The event stream's headers cannot be read.") from error
    return found
