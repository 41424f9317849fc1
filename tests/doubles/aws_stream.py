"""Writes the AWS event stream: binary messages with typed headers and two checksums each.

The format is that of https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html (`vnd.amazon.eventstream`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from zlib import crc32

STRING = 7  # the type of a header whose value is text
PRELUDE = 8  # bytes: the whole length, the headers' length; a checksum of four bytes follows
CHECKSUM = 4


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of the stream."""
    encoded = b"".join(_header(name, value) for name, value in headers.items())
    length = PRELUDE + CHECKSUM + len(encoded) + len(payload) + CHECKSUM
    prelude = struct.pack("!II", length, len(encoded))
    begun = prelude + struct.pack("!I", crc32(prelude)) + encoded + payload
    return begun + struct.pack("!I", crc32(begun))


def event(kind: str, plain: Mapping[str, object]) -> bytes:
    """An event with a JSON payload."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return message(headers, json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode())


def exception(kind: str, plain: Mapping[str, object]) -> bytes:
    """A modelled exception, which ends the stream."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return message(headers, json.dumps(plain).encode())


def _header(name: str, value: str) -> bytes:
    told = value.encode()
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", STRING, len(told)) + told
