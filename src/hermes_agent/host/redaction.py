"""Takes known secrets out of texts: as they are, in base64, URL-encoded, or cut off at an end."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias
from urllib.parse import quote, quote_plus

SHORTEST_HIDDEN = 8
CUT = 12
"""Characters of a secret's beginning or end that give it away where the rest was cut off."""
LARGE, WORD = 1 << 16, 8
"""Characters from which on a text is first looked through for words of secrets, and the bytes of a word."""
MARKER = re.compile(r"\[secret( [A-Za-z_]\w*)?\]|\[redacted\]", re.IGNORECASE)
"""What stands in place of a secret."""


Put: TypeAlias = Callable[[str, str], str]


def as_long(label: str, hidden: str) -> str:
    """The label, filled up so that it has as many bytes as what it hides; a shorter one where it does not fit."""
    size = len(hidden.encode("utf-8", "surrogateescape"))
    fits = next((words for words in (label, "[secret]") if len(words) <= size), "")
    return fits.ljust(size, "*")


class Redaction:
    """Hides the values of `secrets` (value to name). Values shorter than 8 characters are not hidden."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        forms: dict[str, str] = {}
        for value, name in secrets.items():
            if len(value) >= SHORTEST_HIDDEN:
                forms.update(dict.fromkeys(_forms(value), f"[secret {name}]"))
        self._forms = sorted(forms.items(), key=lambda form: -len(form[0]))
        labels = dict.fromkeys(label for _, label in self._forms)
        self._cuts = [_Cut(label, [form for form, named in self._forms if named == label]) for label in labels]
        ends = [part.encode("utf-8", "surrogatepass") for form in forms for part in {form[:CUT], form[-CUT:]}]
        self._short = [part for part in ends if len(part) < CUT]
        self._words = {word for part in ends for word in _words(part)}
        self._has_lines = any(sign in form for form in forms for sign in "\n\r")

    def hide(self, text: str, put: Put = lambda label, _: label) -> str:
        """The text without any of them; `put` makes what stands in the place of one, of its label and itself."""
        if len(text) >= LARGE and not self._may_be_in(text):
            return text
        for form, label in self._forms:
            if form in text:
                text = text.replace(form, put(label, form))
        text = self._without_wrapped(text, put)
        for cut in self._cuts:
            text = cut.without_rest(text, put)
        return text

    def _may_be_in(self, text: str) -> bool:
        """Whether the end of a secret may be in a text: one pass, however many secrets there are. Each end has `CUT`
        bytes in a row, line breaks aside, and so a word that begins at a multiple of four."""
        raw = text.encode("utf-8", "surrogatepass").translate(None, b"\r\n")
        views = (memoryview(raw)[start : len(raw) - (len(raw) - start) % WORD].cast("Q") for start in (0, WORD // 2))
        return (
            self._has_lines
            or any(form in raw for form in self._short)
            or any(not self._words.isdisjoint(view) for view in views)
        )

    def _without_wrapped(self, text: str, put: Put) -> str:
        """Also where line breaks stand inside, as `base64` puts them every 76 characters."""
        joined = text.replace("\r", "").replace("\n", "") if "\n" in text else ""
        for form, label in self._forms:
            if joined and form in joined:
                for wrapped in set(re.findall(r"[\r\n]*".join(map(re.escape, form)), text)):
                    text = text.replace(wrapped, put(label, wrapped))
        return text


def _forms(value: str) -> Iterable[str]:
    raw = value.encode()
    yield value
    yield raw.hex()
    yield from {quote(value, safe=""), quote_plus(value), quote(value)}
    yield from {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):  # Where in a longer text it begins decides how it looks.
            text = encode(b"\0" * shift + raw).decode()
            first = (0, 2, 3)[shift]
            last = len(text) if (shift + len(raw)) % 3 == 0 else len(text.rstrip("=")) - 1
            if last - first >= SHORTEST_HIDDEN:
                yield text[first:last]


def _words(form: bytes) -> Iterable[int]:
    """Each eight bytes of it, as a number of this machine."""
    return (int.from_bytes(form[at : at + WORD], sys.byteorder) for at in range(len(form) - WORD + 1))


class _Cut:
    """What is left of the forms of one secret where a text is cut off: its beginning or its end."""

    def __init__(self, label: str, forms: list[str]) -> None:
        self._label = label
        self._parts: dict[str, list[str]] = {}
        for form in forms:
            if len(form) >= CUT + 4:
                self._parts.setdefault(form[:CUT], []).append(form)
                self._parts.setdefault(form[-CUT:], []).append(form)

    def without_rest(self, text: str, put: Put) -> str:
        """The text without them."""
        for part, forms in self._parts.items():
            at = text.find(part)
            while at >= 0:
                begin = min(_back(text, form, at) for form in forms)
                end = max(_forth(text, form, at) for form in forms)
                stands = put(self._label, text[begin:end])
                text = f"{text[:begin]}{stands}{text[end:]}"
                at = text.find(part, begin + len(stands))
        return text


def _forth(text: str, form: str, at: int) -> int:
    """Where a form that begins at `at` stops standing in the text."""
    end = at + CUT
    while form.startswith(text[at:end]) and end < len(text) and end - at < len(form) and text[end] == form[end - at]:
        end += 1
    return end


def _back(text: str, form: str, at: int) -> int:
    """Where a form whose end was found at `at` begins to stand in the text."""
    end = at + CUT
    while form.endswith(text[at:end]) and at and end - at < len(form) and text[at - 1] == form[at - end - 1]:
        at -= 1
    return at
