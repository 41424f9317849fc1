"""The event stream format, cut in every place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.core.errors import MalformedReply
from hermes_agent.providers.dialect import LONGEST_LINE, SseDecoder


def decoded(*chunks: bytes) -> list[bytes]:
    decoder = SseDecoder()
    return [data for chunk in chunks for data in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\ndata:b\n\n", [b"a", b"b"]),
        (b"data:  two spaces\n\n", [b" two spaces"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\n\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b"data\ndata: x\n\n", [b"\nx"]),
        (b": comment\n\nevent: ping\nid: 7\nretry: 3\n\ndata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: unfinished", [b"unfinished"]),
        (b"\n\n\n", []),
        (b"", []),
        (b"nonsense\n\n", []),
    ],
)
def test_a_stream_is_read_wherever_it_is_cut(stream: bytes, data: list[bytes]):
    assert decoded(stream) == data
    for place in range(len(stream)):
        assert decoded(stream[:place], stream[place:]) == data, place
    assert decoded(*(bytes([byte]) for byte in stream)) == data


@given(
    st.lists(st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), min_size=1), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 7),
)
def test_any_text_survives_any_line_end_and_any_cut(texts: list[str], end: str, size: int):
    stream = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    assert decoded(*(stream[at : at + size] for at in range(0, len(stream), size))) == [text.encode() for text in texts]


def test_a_line_of_ten_megabytes_is_read_and_one_of_more_than_sixteen_is_refused():
    piece = b"x" * 2**20
    assert len(decoded(b"data: ", *[piece] * 10, b"\n\n")[0]) == 10 * 2**20
    with pytest.raises(MalformedReply, match="16 MB"):
        decoded(b"data: ", *[piece] * (LONGEST_LINE // 2**20 + 1))


def test_an_event_of_many_lines_is_bounded_as_a_line_is():
    piece = b"data: " + b"x" * 2**20 + b"\n"
    assert len(decoded(*[piece] * 10, b"\n")[0]) == 10 * 2**20 + 9
    with pytest.raises(MalformedReply, match="16 MB"):
        decoded(*[piece] * 17)
    with pytest.raises(MalformedReply, match="16 MB"):
        decoded(*[piece] * 15, *[b"data\n" * 100_000] * 11)
    assert len(decoded(*[piece * 10 + b"\n"] * 3)) == 3
