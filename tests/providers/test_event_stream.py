import json
import struct
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given, strategies as st

from hermes_agent.core.errors import MalformedReply
from hermes_agent.providers.event_stream import LARGEST, EventStreamDecoder
from tests.doubles.aws_stream import event, exception, message

EVENTS = st.lists(st.tuples(st.text("abcXYZ", min_size=1, max_size=12), st.text(max_size=40)), max_size=6)


@given(EVENTS, st.lists(st.integers(0, 400), max_size=6))
def test_events_come_whole_however_the_bytes_are_cut_and_as_botocore_reads_them(events, cuts):
    data = b"".join(event(kind, {"text": text}) for kind, text in events)
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    decoder, read, start = EventStreamDecoder(), [], 0
    for end in ends:
        read += decoder.feed(data[start:end])
        start = end
    read += decoder.finish()

    buffer = EventStreamBuffer()
    buffer.add_data(data)
    assert [json.loads(one) for one in read] == [{kind: {"text": text}} for kind, text in events]
    assert [(one.headers[":event-type"], json.loads(one.payload)) for one in buffer] == [
        (kind, {"text": text}) for kind, text in events
    ]


def test_an_exception_and_an_error_say_their_kind():
    error = message({":message-type": "error", ":error-code": "Bad", ":error-message": "so"}, b"")
    first, second = EventStreamDecoder().feed(exception("throttlingException", {"message": "slow"}) + error)

    assert json.loads(first) == {"error": {"type": "ThrottlingException", "of": {"message": "slow"}}}
    assert json.loads(second)["error"] == {"type": "Bad", "message": "so"}


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_changed_byte_is_noticed(place: int, change: int):
    data = bytearray(event("metadata", {"usage": "x" * 150}))
    data[place % len(data)] ^= change

    decoder = EventStreamDecoder()
    with pytest.raises(MalformedReply, match="checksum"):
        decoder.feed(bytes(data))


def test_a_message_that_is_cut_off_says_nothing():
    decoder = EventStreamDecoder()

    assert decoder.feed(event("metadata", {})[:-3]) == decoder.finish() == []


@pytest.mark.parametrize("length", [10, LARGEST + 1])
def test_a_length_that_cannot_be_is_refused_at_once(length: int):
    prelude = struct.pack("!II", length, 0)

    with pytest.raises(MalformedReply, match=f"{length} bytes"):
        EventStreamDecoder().feed(prelude + struct.pack("!I", crc32(prelude)))


def headed(headers: bytes) -> bytes:
    prelude = struct.pack("!II", 16 + len(headers) + 2, len(headers))
    begun = prelude + struct.pack("!I", crc32(prelude)) + headers + b"{}"
    return begun + struct.pack("!I", crc32(begun))


def test_headers_of_every_type_are_passed_over():
    named = b"\x01a\x00\x01b\x01\x01c\x02\x07\x01d\x03\x00\x01\x01e\x04\x00\x00\x00\x01\x01f\x05" + bytes(8)
    named += b"\x01g\x06\x00\x02ab\x01h\x08" + bytes(8) + b"\x01i\x09" + bytes(16)
    named += b"\x0b:event-type\x07\x00\x04ping"

    assert EventStreamDecoder().feed(headed(named)) == [b'{"ping":{}}']


@pytest.mark.parametrize("headers", [b"\x01a\x2a", b"\x05ab", b"\x01a\x07\x00\x01\xff"], ids=["type", "end", "text"])
def test_headers_that_cannot_be_read_are_malformed(headers: bytes):
    with pytest.raises(MalformedReply, match="headers"):
        EventStreamDecoder().feed(headed(headers))
