"""Wording of lessons: their plain form, what stands encoded in a text, and the acts that no lesson teaches unasked."""

from __future__ import annotations

import base64
import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

MOST_DECODED = 200_000
CODED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
HEXED = re.compile(r"(?:[0-9a-fA-F]{2}[\s:]?){8,}")
WRAPPED = re.compile(r"(?<=[A-Za-z0-9+/])\r?\n[ \t>#*|-]*(?=[A-Za-z0-9+/=])")
LEAST_PLAIN = 0.9

ACTS = Path(__file__).parent / "acts.tsv"
"""A line for each act: what it is, and the pattern of the words that ask for it, in several languages."""


@cache
def _acts() -> tuple[tuple[str, re.Pattern[str]], ...]:
    lines = (line.partition("\t") for line in ACTS.read_text("utf-8").splitlines())
    return tuple((what, re.compile(pattern, re.IGNORECASE)) for what, _, pattern in lines)


def plain(text: str) -> str:
    """The text without letters that nobody sees, and with one form for each letter."""
    if text.isascii():
        return text
    found = unicodedata.normalize("NFKC", text)
    return "".join(each for each in found if unicodedata.category(each) not in ("Cf", "Mn") or each == "\n")


def decoded(text: str) -> Iterator[str]:
    """What stands encoded in a text: in base64, hexadecimal, percent signs, turned letters, or from behind."""
    text = text[:MOST_DECODED]
    joined = WRAPPED.sub("", text)
    for found in {*CODED.findall(text), *CODED.findall(joined)}:
        yield from _readable(found, _from_base64)
    for found in HEXED.findall(joined):
        yield from _readable(re.sub(r"[\s:]", "", found), bytes.fromhex)
    if "%" in text and (found := unquote(text)) != text:
        yield found
    yield codecs.decode(text, "rot13")
    yield text[::-1]


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))


def _readable(text: str, decode: Callable[[str], bytes]) -> Iterator[str]:
    try:
        found = decode(text).decode()
    except ValueError:
        return
    if found and sum(each.isprintable() or each.isspace() for each in found) >= LEAST_PLAIN * len(found):
        yield found


def would(text: str) -> str:
    """What a lesson would have the agent do that it may not learn without the owner's word; empty for nothing."""
    text = plain(text)
    joined = " ".join(text.split())
    return next((what for each in (joined, text, *decoded(text)) for what, act in _acts() if act.search(each)), "")
