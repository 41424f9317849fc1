"""Text, pictures and other bytes are told apart by how they begin."""

from __future__ import annotations

import pytest

from hermes_agent.tools.files.content import binary_kind, image_type, is_utf8, newline_of, storable


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
        (b"\xff\xfeh\0i\0", "UTF-16"),
        (b"abc\0def", "binary data"),
        (b"caf\xe9 not utf-8", ""),
        (b"", ""),
    ],
)
def test_a_nul_makes_it_binary_and_the_kind_is_named(head: bytes, words: str) -> None:
    assert binary_kind(head).startswith(words)
    assert bool(binary_kind(head)) == bool(words)


def test_most_lines_decide_the_line_ending() -> None:
    assert newline_of(b"a\r\nb\r\nc\n") == "\r\n"
    assert newline_of(b"a\nb\r\nc\n") == "\n"


def test_utf8_is_told_from_other_bytes() -> None:
    assert is_utf8("käse".encode())
    assert not is_utf8(b"k\xe4se")


def test_what_no_database_holds_is_replaced() -> None:
    assert storable("plain é") == "plain é"
    assert "\0" not in storable("a\0b")
    storable("x\udc80").encode()
