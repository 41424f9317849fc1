"""Redaction of a text that arrives in pieces, as the reply of a model."""

from __future__ import annotations

import string
from collections.abc import Callable

LONGEST, CONTEXT = 8192, 512
"""Characters that are held back at most, and those before a new piece that may name the secret in it."""
SIGNS, SPACES = string.digits + string.ascii_letters + string.punctuation, " \t\r\n"
"""What words are made of that may be secrets, and what stands between. In other alphabets words may have no end."""
BEGIN, END, DASHES = "-----BEGIN", "-----END", "-----"


class HiddenStream:
    """Redacts pieces of a text. `take` gives what no later piece can turn into a part of a secret, `rest` gives what
    was held back until then."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._text = self._shown = ""
        self._done = 0

    def take(self, piece: str) -> str:
        """What may be shown now."""
        self._text += piece
        return self._until(max(self._done, len(self._text) - LONGEST, self._settled()))

    def _settled(self) -> int:
        """Where the last word begins, or the first of those with breaks alone between, or a key of many lines."""
        text, at, gap = self._text, len(self._text), "\n"
        while "\n" in gap:
            word = len(text[:at].rstrip(SIGNS))
            at = len(text[:word].rstrip(SPACES))
            gap = text[at:word]
        key = text.rfind(BEGIN, self._done)
        end = text.find(DASHES, text.find(END, key) + len(END)) if key >= 0 and END in text[key:] else -1
        return min(word, key) if key >= 0 and not 0 <= end < word - len(DASHES) else word

    def rest(self) -> str:
        """What was held back; another text may follow."""
        last = self._until(len(self._text))
        self._text, self._shown, self._done = "", "", 0
        return last

    def _until(self, end: int) -> str:
        if end <= self._done:
            return ""
        shown = self._redact(self._text[:end])
        same = next((at for at, sign in enumerate(self._shown) if shown[at : at + 1] != sign), len(self._shown))
        self._shown, self._done = shown, end
        if end > 2 * CONTEXT and (begin := self._text.find(" ", end - CONTEXT, end)) >= 0:
            before, after = self._redact(self._text[:begin]), self._redact(self._text[begin:end])
            if before + after == shown:  # Nothing of a secret is in both.
                self._text, self._shown, self._done = self._text[begin:], after, end - begin
        return shown[same:]
