"""Redaction of a text that arrives in pieces, as the reply of a model."""

from __future__ import annotations

import re
from collections.abc import Callable

LONGEST, CONTEXT = 8192, 512
"""Characters that are held back at most, and those before a new piece that may name the secret in it."""
UNSETTLED = re.compile(r"(?:[!-~]+[ \t]*\r?\n[ \t]*)?[!-~]*\Z")
"""The last word, and the one before a break: a secret may go on behind it. Other alphabets need no spaces."""
OPEN_KEY = re.compile(r"-----BEGIN(?:(?!-----END[A-Z ]*-----).)*\Z", re.DOTALL)


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
        held = UNSETTLED.search(self._text, max(self._done, len(self._text) - LONGEST))
        key = OPEN_KEY.search(self._text, max(self._done, len(self._text) - LONGEST))
        return self._until(min(found.start() if found else len(self._text) for found in (held, key)))

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
            self._text, self._done = self._text[begin:], end - begin
            self._shown = self._redact(self._text[: self._done])
        return shown[same:]
