"""File type detection from content: text with its encoding, pictures, or other binary data."""

from __future__ import annotations

import codecs
from typing import Literal

from hermes_agent.core.dataclass import dataclass

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
)
_RIFF, _WEBP = b"RIFF", b"WEBP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """Text encoding of a file: byte order mark and codec. Decoding and encoding preserve every byte, including
    invalid ones."""

    name: str
    mark: bytes
    codec: str
    errors: str

    def decode(self, content: bytes) -> str:
        """The text without the mark."""
        return content.removeprefix(self.mark).decode(self.codec, self.errors)

    def encode(self, text: str) -> bytes:
        """The file content for this text, with the mark."""
        return self.mark + text.removeprefix("\ufeff").encode(self.codec, self.errors)


UTF8 = Coding(name="UTF-8", mark=b"", codec="utf-8", errors="surrogateescape")
_MARKED = (
    Coding(name="UTF-8 with a byte order mark", mark=codecs.BOM_UTF8, codec="utf-8", errors="surrogateescape"),
    Coding(name="UTF-16, little end first", mark=codecs.BOM_UTF16_LE, codec="utf-16-le", errors="surrogatepass"),
    Coding(name="UTF-16, big end first", mark=codecs.BOM_UTF16_BE, codec="utf-16-be", errors="surrogatepass"),
)


def coding_of(content: bytes) -> Coding:
    """The encoding by byte order mark, otherwise UTF-8."""
    found = next((coding for coding in _MARKED if content.startswith(coding.mark)), UTF8)
    whole_pairs = found.codec == "utf-8" or len(content) % 2 == 0
    return found if whole_pairs else UTF8


def plain_text(content: bytes) -> str:
    """The whole content as text; invalid bytes become U+FFFD."""
    coding = coding_of(content)
    return content.removeprefix(coding.mark).decode(coding.codec, "replace")


def image_type(head: bytes) -> str:
    """The media type of a picture that models accept; empty for anything else."""
    if head.startswith(_RIFF) and head[8:12] == _WEBP:
        return "image/webp"
    return next((media for magic, media in IMAGES if head.startswith(magic)), "")


def binary_kind(head: bytes) -> str:
    """What kind of binary data this is, in words; empty for text. A NUL near the beginning makes it binary."""
    if (b"\0" not in head and not head.startswith(b"%PDF-")) or coding_of(head[: len(head) // 2 * 2]).mark:
        return ""
    return next((words for magic, words in KINDS if head.startswith(magic)), "binary data")


def newline_of(text: str) -> Literal["\n", "\r\n"]:
    """The text's prevailing line ending."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def is_text(content: bytes) -> bool:
    """Whether the whole content is valid in its encoding."""
    coding = coding_of(content)
    try:
        content.removeprefix(coding.mark).decode(coding.codec)
    except UnicodeDecodeError:
        return False
    return True


def storable(text: str) -> str:
    """The text with NUL and lone surrogates, which databases and providers reject, replaced by U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
