"""A file is read while it is sent."""

from email import policy
from email.parser import BytesParser
from pathlib import Path

import pytest

from hermes_agent.core.chat import Attachment
from hermes_agent.gateway.channel import NeverHere
from hermes_agent.gateway.service import PIECE, bytes_of, form, upload


async def test_a_file_alone_is_its_bytes_in_pieces(tmp_path: Path):
    (tmp_path / "a").write_bytes(content := b"xy" * PIECE)

    body = await upload(Attachment(path=str(tmp_path / "a"), name="a", media_type="x"))
    pieces = [piece async for piece in body.pieces()]

    assert b"".join(pieces) == content
    assert max(map(len, pieces)) == PIECE
    assert (body.size, body.media_type) == (2 * PIECE, "application/octet-stream")


async def test_a_form_holds_values_and_the_file_whatever_its_name_is(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"\0\r\n--content")

    body = await form("file", Attachment(path=str(tmp_path / "a"), name='a"\r\nb'), {"chat": "1", "more": {"a": 1}})
    written = b"".join([piece async for piece in body.pieces()])
    read = BytesParser(policy=policy.HTTP).parsebytes(f"Content-Type: {body.media_type}\r\n\r\n".encode() + written)
    parts = [
        (each.get_param("name", header="content-disposition"), each.get_payload(decode=True))
        for each in read.iter_parts()
    ]

    assert len(written) == body.size
    assert parts == [("chat", b"1"), ("more", b'{"a": 1}'), ("file", b"\0\r\n--content")]


@pytest.mark.parametrize("read", [upload, bytes_of])
async def test_a_file_that_is_gone_is_said_to_be(read, tmp_path: Path):
    with pytest.raises(NeverHere, match="The file a cannot be read: No such file or directory"):
        await read(Attachment(path=str(tmp_path / "a"), name="a"))
