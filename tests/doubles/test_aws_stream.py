import json

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer

from tests.doubles.aws_stream import event, exception, message


def read(data: bytes):
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return list(buffer)


def test_botocore_reads_what_is_written():
    first, second = read(event("metadata", {"usage": "ü"}) + exception("throttlingException", {"message": "slow"}))

    assert (first.headers[":event-type"], json.loads(first.payload)) == ("metadata", {"usage": "ü"})
    assert (second.headers[":message-type"], second.headers[":exception-type"]) == ("exception", "throttlingException")


@pytest.mark.parametrize("place", [0, 5, 9, 20, -1])
def test_every_byte_is_under_a_checksum(place: int):
    data = bytearray(message({":event-type": "x"}, b"{}"))
    data[place] ^= 1

    with pytest.raises(ChecksumMismatch):
        read(bytes(data))
