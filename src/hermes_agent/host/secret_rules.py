"""Finds what looks like a key of a well-known service, by rules that are data of maintained sets."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from hermes_agent.core.dataclass import dataclass

Put: TypeAlias = Callable[[str, str], str]
Place: TypeAlias = tuple[int, int]
LARGE = 1 << 16
"""Characters from which on a text is first looked through by a filter."""
BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=[0-9\[;]m)|(?<=%[0-9A-Fa-f]{2}))"
"""What stands before a key: no letter or digit, but for those that end an escape of JSON, a terminal or an address."""
BREAK = re.compile(r"(?:\x1b\[[0-9;]*[A-Za-z]|(?<=\S)[ \t]*\r?\n[ \t]*(?=\S))+")
"""What may stand inside a key: colours, and the ends of lines of a text that was wrapped."""
GOES_ON = re.compile(r"(?=[A-Za-z._-]{0,40}[0-9])[A-Za-z0-9+/=._-]{16}")
"""How a key looks behind a break before which it may have ended."""
RUN, BROKEN = re.compile(b"x" * 14 + b"x*"), re.compile(b"xxxxxxnn? *xxxxx*")
"""What a key holds, and one with a break, where `x` stands for the signs of keys, and `n` for the end of a line."""
NEAR, FAR = 80, 256
"""Characters around a run and a break among which a whole key and its name stand."""
LINE, HASH, WORDS = b"-_=~+%.&", b"0123456789abcdef-", b"abcdefghijklmnopqrstuvwxyz_-~+%=&."
"""Signs of drawn lines, of hashes and ids, and of words and names."""
LONG, IDS = 30, 50
"""Characters from which on a run may be a key although it looks like a name, and although it looks like an id."""
START = re.compile(r"\S[ \t]*\n[ \t]*\Z")
LONGEST, MOST, TRIES = 8192, 128, 4
"""Characters of a broken key at most, breaks inside, and those before which a rule must find something."""
DIGIT = re.compile(b"[0-9]")
PLACEHOLDER = re.compile(
    r"your|example|placeholder|change|dummy|sample|xxx|\.\.\.|redacted|insert|replace|secret|token|passw|"
    r"abcdef|12345678|(?<![a-z])(?:my|the|some|foo|bar|baz|test|fake|pass|user|key|none|null|true|false)(?![a-z])",
    re.IGNORECASE,
)


def _kinds(signs: bytes) -> bytes:
    """A table that translates these, letters and digits to `x`, ends of lines to `n`, spaces to themselves."""
    table = bytearray(b"-" * 256)
    for found, kind in (
        (rb"[A-Za-z0-9]", b"x"),
        (b"[" + re.escape(signs) + b"]", b"x"),
        (rb"[\r\n]", b"n"),
        (rb"[ \t]", b" "),
    ):
        for sign in re.findall(found, bytes(range(256))):
            table[sign[0]] = kind[0]
    return bytes(table)


OF_RUN, OF_BROKEN = _kinds(b"_-+~%"), _kinds(b"_-+~%=&.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`pattern` finds a key (its group `value`, or all and `back` characters before) where one of `keys` stands. One
    that need not hold a run of 14 characters is looked for `anywhere`, by keys in small letters. A `random` key has
    digits and many different characters; a `password` is no placeholder, and a `literal` one no name in a program."""

    keys: tuple[str, ...]
    pattern: str
    back: int = 0
    anywhere: bool = False
    random: bool = False
    password: bool = False
    literal: bool = False

    def places(self, text: str, small: str, breaks: Sequence[int] = ()) -> Iterator[Place]:
        """Where keys begin and end in a text and the same in `small` letters. Where it has `breaks`, those with one
        inside."""
        match, where = _compiled(self.pattern).match, small if self.anywhere else text
        for key in self.keys:
            at = where.find(key)
            while at >= 0:
                end = at + 1
                if breaks:
                    found = self._broken_place(text, at, breaks)
                else:
                    matched = match(text, at)
                    found = self._place(matched) if matched else None
                if found:
                    end = max(end, found[1])
                    yield found
                at = where.find(key, end)

    def _place(self, found: re.Match[str]) -> Place | None:
        group = "value" if "value" in found.re.groupindex else 0
        begin, end = found.span(group)
        return (begin - self.back, end) if self._counts(found[group]) else None

    def _broken_place(self, text: str, at: int, breaks: Sequence[int]) -> Place | None:
        """The shortest that ends where no more of a key follows: the text may go on with any word behind a break."""
        first = bisect_right(breaks, at)
        if first == len(breaks) or breaks[first] - at > FAR:
            return None
        begin = at if first and breaks[first - 1] == at else 0  # Nothing stands before it there.
        line, match = text[begin : at + LONGEST], _compiled(self.pattern).match
        place, cuts = None, (*breaks[first : first + MOST], len(text))
        for tries, cut in enumerate(cuts, 1):
            matched = match(line, at - begin, cut - begin)
            place = self._place(matched) if matched else None
            goes_on = tries < TRIES if place is None else place[1] + begin == cut and GOES_ON.match(text, cut)
            if not goes_on:
                break
        if not place or bisect_right(breaks, place[0] + begin) >= bisect_left(breaks, place[1] + begin):
            return None
        return place[0] + begin, place[1] + begin

    def _counts(self, value: str) -> bool:
        return (not self.random or _is_random(value)) and (not self.password or _may_be_password(value, self.literal))


def key_places(text: str) -> list[Place]:
    """Where what looks like a key begins and ends; places may overlap."""
    plain = text.encode("ascii", "replace").decode()
    runs = _spans(plain, RUN, OF_RUN)
    near, small = "\n".join(plain[begin:end] for begin, end in _slices(runs, NEAR)), plain.lower()
    here = [rule for rule in rules() if rule.anywhere or (near and next(rule.places(near, near), None))]
    found = {place for rule in here for place in rule.places(plain, small)}
    if "\x1b" in plain:
        return sorted(found.union(_broken(plain, [(0, len(plain))])))
    if "\n" not in plain:
        return sorted(found)
    cut = [
        (begin, end)
        for begin, end in runs
        if BREAK.match(plain, end) or START.search(plain, max(0, begin - NEAR), begin)
    ]
    wrapped = sorted([*cut, *_spans(plain, BROKEN, OF_BROKEN)])
    return sorted(found.union(_broken(plain, _slices(wrapped, FAR))))


def _broken(text: str, slices: Iterable[Place]) -> Iterator[Place]:
    """The places of keys with breaks inside, in these slices of the text."""
    parts: list[str] = []
    starts, origins, breaks, size = [], [], [], 0
    for first, last in slices:
        at = first
        for gap in (*BREAK.finditer(text, first, last), None):
            end = last if gap is None else gap.start()
            starts.append(size)
            origins.append(at)
            parts.append(text[at:end] if gap else f"{text[at:end]}\n")
            size += len(parts[-1])
            if gap is not None:
                breaks.append(size)
                at = gap.end()

    def origin(place: int) -> int:
        part = bisect_right(starts, place) - 1
        return origins[part] + place - starts[part]

    joined = "".join(parts)
    if breaks:
        small = joined.lower()
        for begin, end in (place for rule in rules() for place in rule.places(joined, small, breaks)):
            yield origin(begin), origin(end - 1) + 1


def _spans(text: str, pattern: re.Pattern[bytes], table: bytes) -> list[Place]:
    """Where the text holds what may be part of a key."""
    raw = text.encode()
    kinds, spans = raw.translate(table), []
    for found in pattern.finditer(kinds):
        begin, end = found.span()
        if pattern is BROKEN:
            before = kinds[max(0, begin - FAR) : begin]
            begin -= len(before) - len(before.rstrip(b"x"))
        part = b"".join(raw[begin:end].split())
        drawn = part.strip(HASH) if len(part) < IDS else part.strip(LINE)
        if drawn and (len(part) >= LONG or (part.strip(WORDS) and DIGIT.search(part))):
            spans.append((begin, end))
    return spans


def _slices(spans: Iterable[Place], more: int) -> list[Place]:
    """The spans with so many characters around them, and those that touch as one."""
    slices: list[Place] = []
    for begin, end in spans:
        first = max(0, begin - more)
        if slices and first <= slices[-1][1]:
            slices[-1] = slices[-1][0], max(slices[-1][1], end + more)
        else:
            slices.append((first, end + more))
    return slices


def hide_keys(text: str, put: Put, label: str) -> str:
    """The text with what looks like a key replaced by what `put` makes of the label and the key."""
    parts: list[str] = []
    begin, done, last = -1, 0, 0
    for first, end in (*key_places(text), (len(text) + 1, 0)):
        if first >= last and last:
            parts += [text[done:begin], put(label, text[begin:last])]
            done = last
        if first >= last:
            begin = first
        last = max(last, end)
    return "".join((*parts, text[done:])) if parts else text


@cache
def rules() -> tuple[Rule, ...]:
    """The rules."""
    plain = json.loads(Path(__file__).with_suffix(".json").read_bytes())["rules"]
    facts = ({name: value for name, value in each.items() if name not in ("name", "from")} for each in plain)
    return tuple(Rule(**{**each, "keys": tuple(each["keys"])}) for each in facts)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("<B>", BEFORE))


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
