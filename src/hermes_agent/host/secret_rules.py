"""Finds what looks like a key of a well-known service, by rules that are data of maintained sets."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

from hermes_agent.core.dataclass import dataclass

Put: TypeAlias = Callable[[str, str], str]
LARGE, WORD, NAME = 1 << 16, 16, 4
"""Characters from which on a text is first looked through by its different words, and the shortest words that may hold
a key, and the name of one."""
DISTINCT = 4
"""Characters of a rule's key from which on it is rare enough to look at each place where it stands."""
BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=[0-9\[;]m)|(?<=%[0-9A-Fa-f]{2}))"
"""What stands before a key: no letter or digit, but for those that end an escape of JSON, a terminal or an address."""
BREAK = r"(?:\x1b\[[0-9;]*[A-Za-z]|(?<=\S{6})[ \t]*\r?\n[ \t]*(?=\S))"
"""What may stand inside a key: colours, and the ends of lines of a text that was wrapped."""
COUNTED = re.compile(r"(?<!<=)(\[[^]]+\])\{(\d+)\}(\1\*)?")
PLACEHOLDER = re.compile(
    r"your|example|placeholder|change|dummy|sample|xxx|\.\.\.|redacted|insert|replace|secret|token|passw|"
    r"abcdef|12345678|(?<![a-z])(?:my|the|some|foo|bar|baz|test|fake|pass|user|key|none|null|true|false)(?![a-z])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`pattern` finds a key (its group `value`, or all and `back` characters before) where one of `keys` stands; in a
    `named` one that is a word before. A `random` key has digits and many different characters; a `password` is no
    placeholder, and a `literal` one no name in a program."""

    keys: tuple[str, ...]
    pattern: str
    back: int = 0
    named: bool = False
    random: bool = False
    password: bool = False
    literal: bool = False

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the keys begin and end."""
        pattern = _compiled(self.pattern, "\n" in text or "\x1b" in text)
        for key in self.keys:
            at = text.find(key)
            while at >= 0:
                found, end = pattern.match(text, at), at + 1
                if found and self._counts(found):
                    group = "value" if "value" in pattern.groupindex else 0
                    end = found.end(group)
                    yield found.start(group) - self.back, end
                at = text.find(key, end)

    def may_be_in(self, words: str) -> bool:
        """Whether a key may be in a text of these words."""
        if min(map(len, self.keys)) >= DISTINCT:
            return any(key in words for key in self.keys)
        return next(self.places(words), None) is not None

    def _counts(self, found: re.Match[str]) -> bool:
        value = re.sub(BREAK, "", found.groupdict().get("value") or found[0])
        return (not self.random or _is_random(value)) and (not self.password or _may_be_password(value, self.literal))


def key_places(text: str) -> list[tuple[int, int]]:
    """Where what looks like a key begins and ends; places may overlap."""
    found = rules() if len(text) < LARGE else _rules_for(text)
    return sorted(place for rule in found for place in rule.places(text))


def hide_keys(text: str, put: Put, label: str) -> str:
    """The text with what looks like a key replaced by what `put` makes of the label and the key."""
    parts, done = [], 0
    for begin, end in key_places(text):
        if end > done:  # A place that begins inside of the one before is hidden with what is left of it.
            parts += [text[done : max(begin, done)], put(label, text[max(begin, done) : end])]
            done = end
    return "".join((*parts, text[done:])) if parts else text


@cache
def rules() -> tuple[Rule, ...]:
    """The rules."""
    plain = json.loads(Path(__file__).with_suffix(".json").read_bytes())["rules"]
    facts = ({name: value for name, value in each.items() if name not in ("name", "from")} for each in plain)
    return tuple(Rule(**{**each, "keys": tuple(each["keys"])}) for each in facts)


@cache
def _compiled(pattern: str, wrapped: bool) -> re.Pattern[str]:
    if wrapped:
        pattern = COUNTED.sub(_breaking, pattern)
    return re.compile(pattern.replace("<B>", BEFORE))


def _breaking(found: re.Match[str]) -> str:
    """So many characters of a class with breaks between them; what follows them without a number goes on behind a break
    only where that looks like a key too."""
    signs, count, more = found[1], int(found[2]) - 1, found[3] or ""
    rest = f"(?:{BREAK}+(?=[A-Za-z._-]{{0,40}}[0-9]){signs}{{16}}{more})*" if more else ""
    return f"{signs}(?:{BREAK}*{signs}){{{count}}}{more}{rest}"


def _rules_for(text: str) -> list[Rule]:
    words = set(text.split())
    names, values = (" ".join(word for word in words if len(word) >= least) for least in (NAME, WORD))
    return [rule for rule in rules() if rule.may_be_in(names if rule.named else values)]


def _is_random(value: str) -> bool:
    """Whether a value has letters, digits, and as many different characters as one that was drawn."""
    size = len(value)
    entropy = -sum(count / size * math.log2(count / size) for count in Counter(value).values())
    drawn = entropy >= min(3.0, 0.8 * math.log2(size))
    return drawn and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _may_be_password(value: str, literal: bool) -> bool:
    """Whether a value is neither a placeholder nor a word, and where it is a literal, no address and no name in a
    program: in those letters, capitals and digits take turns less often."""
    turns = len(re.findall(r"[a-z]+|[A-Z]+|[0-9]+|[^a-zA-Z0-9]+", value))
    name = r"[A-Za-z_]\w*" if turns < 0.35 * len(value) else r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+"
    is_name = literal and ("://" in value or re.fullmatch(name, value))
    return not (is_name or PLACEHOLDER.search(value) or re.fullmatch(r"[a-z]+|[A-Z]+", value))
