"""Text, pictures and other bytes are told apart by how they begin."""

from __future__ import annotations

import pytest

from hermes_agent.tools.files.content import binary_kind, coding_of, image_type, is_text, newline_of, storable


@pytest.mark.parametrize(
    ("head", "media"),
    [
        (b"\x89PNG\r\n\x1a\nrest", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", ""),
        (b"hello", ""),
    ],
)
def test_pictures_are_known_by_their_signature(head: bytes, media: str) -> None:
    assert image_type(head) == media


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"%PDF-1.7", "a PDF document"),
        (b"\x7fELF\x02\0", "an ELF program"),
        (b"\xff\xfeh\0i\0", ""),
        (b"abc\0def", "binary data"),
        (b"caf\xe9 not utf-8", ""),
        (b"", ""),
    ],
)
def test_a_nul_makes_it_binary_and_the_kind_is_named(head: bytes, words: str) -> None:
    assert binary_kind(head).startswith(words)
    assert bool(binary_kind(head)) == bool(words)


def test_most_lines_decide_the_line_ending() -> None:
    assert newline_of("a\r\nb\r\nc\n") == "\r\n"
    assert newline_of("a\nb\r\nc\n") == "\n"


def test_text_is_told_from_other_bytes() -> None:
    assert is_text("käse".encode())
    assert is_text("käse".encode("utf-16"))
    assert not is_text(b"k\xe4se")


@pytest.mark.parametrize(
    "content",
    [
        "käse\r\n".encode(),
        b"k\xe4se",
        b"\xef\xbb\xbfmarked",
        "both ends".encode("utf-16"),
        b"\xfe\xff" + "big end first".encode("utf-16-be"),
        b"\xff\xfe\x00\xd8",  # half a pair
        b"\xff\xfeodd",
        b"",
    ],
)
def test_a_coding_gives_back_every_byte_that_it_read(content: bytes) -> None:
    coding = coding_of(content)

    assert coding.encode(coding.decode(content)) == content


def test_what_no_database_holds_is_replaced() -> None:
    assert storable("plain é") == "plain é"
    assert "\0" not in storable("a\0b")
    storable("x\udc80").encode()
