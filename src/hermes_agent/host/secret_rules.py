"""Finds what looks like a key of a well-known service, by rules that are data of maintained sets."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from hermes_agent.core.dataclass import dataclass

Put: TypeAlias = Callable[[str, str], str]
Place: TypeAlias = tuple[int, int]
BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=[0-9\[;]m)|(?<=%[0-9A-Fa-f]{2}))"
"""What stands before a key: no letter or digit, but for those that end an escape of JSON, a terminal or an address."""
BREAK = re.compile(r"(?:\x1b\[[0-9;]*[A-Za-z]|(?<=\S)[ \t]*\r?\n[ \t]*(?=\S))+")
"""What may stand inside a key: colours, and the ends of lines of a text that was wrapped."""
GOES_ON = re.compile(r"(?=[A-Za-z._-]{0,40}[0-9])[A-Za-z0-9+/=._-]{16}")
"""How a key looks behind a break before which it may have ended."""
LEAST = 14
"""Characters in a row that each key has, but for those that are looked for `anywhere`."""
RUN, BROKEN = re.compile(b"x" * LEAST + b"x*"), re.compile(b"xxxxxxnn? *xxxxx*")
"""What a key holds, and one with a break, where `x` stands for the signs of keys, and `n` for the end of a line."""
NEAR, FAR = 80, 160
"""Characters around a run and a break among which a whole key and its name stand."""
LINE, HASH, WORDS = b"-_=~+%.&", b"0123456789abcdef-", b"abcdefghijklmnopqrstuvwxyz_-~+%=&."
"""Signs of drawn lines, of hashes and ids, and of words and names."""
LONG, IDS = re.compile(b"[A-Za-z0-9]{20}"), 50
"""What no name holds, and characters from which on a run may be a key although it looks like an id."""
START = re.compile(r"\S[ \t]*\n[ \t]*\Z")
LONGEST, MOST, TRIES = 8192, 128, 4
"""Characters of a broken key at most, breaks inside, and those before which a rule must find something."""
COLUMNS = range(60, 300)
"""How wide a terminal is."""
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

    def places(self, text: str, small: str) -> Iterator[Place]:
        """Where keys begin and end in a text and the same in `small` letters."""
        match = self.compiled.match
        for at in self.stands(text, small):
            if (found := match(text, at)) and (place := self.place(found)):
                yield place

    def stands(self, text: str, small: str) -> Iterator[int]:
        """Where one of the keys stands."""
        where = small if self.anywhere else text
        for key in self.keys:
            at = where.find(key)
            while at >= 0:
                yield at
                at = where.find(key, at + 1)

    def place(self, found: re.Match[str]) -> Place | None:
        """Where the key begins and ends that the pattern found; None for one that is none."""
        group = "value" if "value" in found.re.groupindex else 0
        begin, end = found.span(group)
        return (begin - self.back, end) if self._counts(found[group]) else None

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern."""
        return _compiled(self.pattern)

    def _counts(self, value: str) -> bool:
        return (not self.random or _is_random(value)) and (not self.password or _may_be_password(value, self.literal))


def key_places(text: str) -> list[Place]:
    """Where what looks like a key begins and ends; places may overlap."""
    plain = text.encode("ascii", "replace").decode()
    runs = _spans(plain, RUN, OF_RUN)
    near, small = "\n".join(plain[begin:end] for begin, end in _slices(runs, NEAR)), plain.lower()
    here = [rule for rule in rules() if rule.anywhere or (near and next(rule.places(near, near), None))]
    found = {place for rule in here for place in rule.places(plain, small)}
    if "\n" in plain or "\x1b" in plain:
        full = _full_lines(plain)
        broken = [(0, len(plain))] if "\x1b" in plain else _slices(_broken(plain, runs, full), FAR)
        found.update(_Joined(plain, broken, full).places())
    return sorted(found)


class _Joined:
    """Slices of a text without the breaks inside. At `full` lines a terminal broke it."""

    def __init__(self, text: str, slices: Sequence[Place], full: Collection[int]) -> None:
        self._starts: list[int] = []
        self._origins: list[int] = []
        self._breaks: list[int] = []
        self._full: set[int] = set()
        parts, size = [], 0
        for first, last in slices:
            at = first
            for gap in (*BREAK.finditer(text, first, last), None):
                parts.append(f"{text[at:last]}\n" if gap is None else text[at : gap.start()])
                self._starts.append(size)
                self._origins.append(at)
                size += len(parts[-1])
                if gap is not None:
                    self._breaks.append(size)
                    self._full.update({size} if gap.start() in full else ())
                    at = gap.end()
        self._text = "".join(parts)

    def places(self) -> Iterator[Place]:
        """Where in the whole text keys stand near breaks."""
        text, small = self._text, self._text.lower()
        for rule in rules() if self._breaks else ():
            for at in rule.stands(text, small):
                if place := self._place(rule, at):
                    yield self._origin(place[0]), self._origin(place[1] - 1) + 1

    def _place(self, rule: Rule, at: int) -> Place | None:
        """The shortest that ends where no more of a key follows: the text may go on with any word behind a break."""
        first, breaks = bisect_right(self._breaks, at), self._breaks
        if not any(abs(cut - at) <= FAR for cut in breaks[max(0, first - 1) : first + 1]):
            return None
        starts = rule.pattern.startswith("<B>") and first and breaks[first - 1] == at
        begin = at if starts else max(0, at - FAR)  # Where it starts a line, nothing stands before it.
        line, place = self._text[begin : at + LONGEST], None
        for tries, cut in enumerate((*breaks[first : first + MOST], len(self._text)), 1):
            found = rule.compiled.match(line, at - begin, cut - begin)
            place = (rule.place(found) if found else None) or place
            if place is None:
                goes_on = tries < TRIES
            else:
                goes_on = cut in self._full or GOES_ON.match(self._text, cut) is not None
                goes_on = goes_on and not re.search(r"\s", line[place[1] : cut - begin])
            if not goes_on:
                break
        return None if place is None else (place[0] + begin, place[1] + begin)

    def _origin(self, place: int) -> int:
        part = bisect_right(self._starts, place) - 1
        return self._origins[part] + place - self._starts[part]


def _broken(text: str, runs: Sequence[Place], full: Collection[int]) -> list[Place]:
    """Where the text holds what may be part of a key with a break inside: `runs` at the end of a line, and others."""
    cut = {each for each in runs if BREAK.match(text, each[1]) or START.search(text, max(0, each[0] - NEAR), each[0])}
    return sorted(cut.union(_spans(text, BROKEN, OF_BROKEN), ((at, at + 1) for at in full)))


def is_drawn(part: bytes) -> bool:
    """Whether a run may be part of a key: no drawn line, no name or word, no hash or id."""
    drawn = part.strip(HASH) if len(part) < IDS else part.strip(LINE)
    return bool(drawn and ((part.strip(WORDS) and DIGIT.search(part)) or LONG.search(part)))


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
        if is_drawn(part) and (pattern is RUN or BREAK.search(text, begin, end)):
            spans.append((begin, end))
    return spans


def _full_lines(text: str) -> set[int]:
    """The ends of lines where a terminal may have broken a key: they are as long as no other line is."""
    lines = text.split("\n")
    lengths = list(map(len, lines))
    width, at = max(lengths), -1
    full: set[int] = set()
    if width not in COLUMNS:
        return full
    for length, line, after in zip(lengths, lines, lines[1:], strict=False):
        at += length + 1
        if length == width and len(word := f"{line.rpartition(' ')[2]}{after.partition(' ')[0]}") >= LEAST:
            full.update({at} if is_drawn(word.encode()) else ())
    return full


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
