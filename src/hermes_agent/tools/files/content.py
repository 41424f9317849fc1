"""What is in a file: text, a picture or other bytes, told from its beginning."""

from __future__ import annotations

from typing import Literal

SNIFFED = 8192
# The signatures with which these formats begin, and what they are called.
IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
KINDS = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or an office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "an ELF program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xff\xfe", "UTF-16 text (convert it with `iconv -f UTF-16 -t UTF-8`)"),
    (b"\xfe\xff", "UTF-16 text (convert it with `iconv -f UTF-16 -t UTF-8`)"),
)
_RIFF, _WEBP = b"RIFF", b"WEBP"


def image_type(head: bytes) -> str:
    """The media type of a picture that models can look at; empty for anything else."""
    if head.startswith(_RIFF) and head[8:12] == _WEBP:
        return "image/webp"
    return next((media for magic, media in IMAGES if head.startswith(magic)), "")


def binary_kind(head: bytes) -> str:
    """What these bytes are where they are not text; empty for text. A NUL in the beginning makes it binary."""
    if b"\0" not in head and not head.startswith(b"%PDF-"):
        return ""
    return next((words for magic, words in KINDS if head.startswith(magic)), "binary data")


def newline_of(content: bytes) -> Literal["\n", "\r\n"]:
    """The line ending that most lines of the file have."""
    return "\r\n" if content.count(b"\r\n") * 2 > content.count(b"\n") else "\n"


def is_utf8(content: bytes) -> bool:
    """Whether the whole content decodes."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def storable(text: str) -> str:
    """The text without what a database or a provider cannot hold: NUL and lone surrogates become U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
