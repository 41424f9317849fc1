"""Class of each text of a conversation, and detection of text that was copied out of the workspace."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from typing import Any, Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import ContextAdded, Entry, MessageTaken, PrefixFrozen, Replied, ToolEnded
from hermes_agent.core.messages import Message, Origin, Part, Role, Text, ToolCall, ToolResult, Trust, trust_of
from hermes_agent.learning.mentions import Named, hosts_in
from hermes_agent.learning.wording import decoded, plain, would

By = Literal["person", "model", "other"]
LIBRARY = frozenset({"skills_list", "skill_view", "skill_manage", "memory"})
"""Tools that work in a review."""
LEDGER = frozenset({Origin.SKILL, Origin.MEMORY})
RUN = 6
"""So many words in a row that stand in the workspace too are copied."""
LEAST = 3
"""A whole sentence of so many words or more that stands there too is copied; a heading needs `RUN` - 1."""
LONGEST_COMMAND = 200
MOST_COVERED = 0.8
"""Of the words of a text, so many may not stand there three in a row: a copy in pieces."""

WORDS = re.compile(r"[぀-ヿ㐀-鿿가-힯]|[^\W぀-ヿ㐀-鿿가-힯]+")
SENTENCE = re.compile(r"[^\n.!?:;\"。!?:;]+(?:[.!?:](?=[^\s\"])[^\n.!?:;\"。!?:;]+)*")
LINE_END = re.compile(r"\n[ \t>#*|-]*")
MIXED = re.compile(r"(?<!\w)(?=\w*(\d))(?=\w*([A-Za-z]))\w{20,}")
OPAQUE = re.compile(r"[A-Za-z0-9]{20,}")
"""In `MIXED`, up to its last digit and letter: a word that may say anything to whoever decodes it."""
MOST_HOSTS = 100
"""Unknown hosts of one text. Of more than that each counts as one from outside."""
NUMBERED = re.compile(r"^[ \t]*(?:[^\s:|]+[:-])?\d+[ \t]*[:|\t.)-][ \t]?", re.MULTILINE)
"""What tools put before a line: its number, and the file that it is from."""
NOT = frozenset(
    WORDS.findall("not no never don dont without except unless nicht kein keine nie ohne pas jamais sin nunca")
)
EMPTY = frozenset(
    WORDS.findall(
        "the and for that this with are was were has have had its his her their you your they from into onto please "
        "remember note keep mind always user person owner prefers wants likes asked said says should must will would "
        "der die das und ist ein eine"
    )
)
"""Words that say nothing of what is taught."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A text of the conversation: its event number, its class, its source (`user`, `assistant`, a tool's name), and
    whether a person of the conversation typed it, or the model said it."""

    number: int
    trust: Trust
    text: str
    source: str
    command: bool = False
    by: By = "other"


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters."""

    start: int
    end: int


def class_of(part: Part, role: Role, seen: Trust, own: Origin = Origin.OWNER) -> Trust:
    """The class of a part after the worst that was `seen`: what the model says, and what its calls give back of their
    arguments, is no better."""
    match part:
        case ToolResult(parts=parts, is_error=False) if all(each.origin in LEDGER for each in parts):
            return trust_of(part, own)
        case ToolResult() | ToolCall():
            return max(seen, trust_of(part, own))
        case Text(origin=Origin.MODEL):
            return seen
        case _ if role is Role.ASSISTANT:
            return seen
        case _:
            return trust_of(part, own)


def pieces_of(entries: Iterable[Entry], own: Origin = Origin.OWNER) -> list[Piece]:
    """All texts of a conversation in order, with the class of each. The command of a failed call is not listed as a
    command. `own` is the label of the conversation's person."""
    entries = list(entries)
    failed = {entry.event.call_id for entry in entries if isinstance(entry.event, ToolEnded) and entry.event.is_error}
    found: list[Piece] = []
    seen = prompt_in(entries)
    for entry in entries:
        match entry.event:
            case MessageTaken(message=message) | ContextAdded(message=message) | ToolEnded(message=message):
                found += _pieces(entry.number, message, failed, (seen, own))
                seen = max((seen, *(class_of(part, message.role, seen, own) for part in message.parts)))
            case Replied(message=message):
                found += _pieces(entry.number, message, failed, (seen, own))
            case _:
                pass
    return found


def prompt_in(entries: Iterable[Entry]) -> Trust:
    """The worst class in the prompts of a conversation."""
    prompts = (entry.event.sections for entry in entries if isinstance(entry.event, PrefixFrozen))
    return max((section.origin.trust for sections in prompts for section in sections), default=Trust.CLEAN)


def _pieces(number: int, message: Message, failed: Collection[str], before: tuple[Trust, Origin]) -> Iterator[Piece]:
    for part in message.parts:
        trust = class_of(part, message.role, *before)
        match part:
            case Text(text=text, origin=origin):
                typed = message.role is Role.USER and origin in (Origin.OWNER, before[1])
                said: By = "model" if message.role is Role.ASSISTANT else "other"
                by: By = "person" if typed else said
                yield Piece(number=number, trust=trust, text=text, source=message.role.value, by=by)
            case ToolCall(name=name, arguments=arguments):
                yield Piece(number=number, trust=trust, text=name, source=name, by="model")
                for key, text in texts_of(arguments):
                    command = key == "command" and part.id not in failed
                    yield Piece(number=number, trust=trust, text=text, source=name, command=command, by="model")
            case ToolResult(name=name):
                yield Piece(number=number, trust=trust, text=part.text, source=name)
            case _:
                pass


def texts_of(value: Any, key: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - arguments are JSON
    """The texts in a JSON value with their keys."""
    match value:
        case str():
            yield key, value
        case Mapping():
            for name, inner in value.items():
                yield from texts_of(inner, str(name))
        case list() | tuple():
            for inner in value:
                yield from texts_of(inner, key)
        case _:
            pass


class Sources:
    """The texts of a conversation by class. Words are compared to see what of the workspace was copied. What is from
    outside teaches nothing, whatever it says and whoever repeats it. The indexes are made when they are first used."""

    def __init__(self, pieces: Sequence[Piece] = (), prompt: Trust = Trust.CLEAN) -> None:
        self.pieces, self.prompt = pieces, prompt

    @property
    def trust(self) -> Trust:
        """The worst class of all."""
        return max((self.prompt, *(piece.trust for piece in self.pieces)))

    def copied(self, text: str) -> dict[Span, str]:
        """The parts of a text that stand in the workspace alone, each with its source."""
        text, theirs = plain(text), self._theirs
        found: dict[Span, str] = {}
        words = list(WORDS.finditer(text)) if theirs else []
        folded = [word[0].casefold() for word in words]
        for length, end in ((RUN, ""), *SHORT):
            for place, key in enumerate(_runs(folded, length, end)):
                if key in theirs:
                    found[Span(words[place].start(), words[place + length - 1].end())] = theirs[key]
        joined = LINE_END.sub(lambda found: " " * len(found[0]), text)
        for span, key in (*_sentences(text), *_sentences(joined), *_opaque(text)) if words else ():
            if key in theirs:
                found[span] = theirs[key]
        if not found and (source := self._covered(text)):
            found[Span(0, len(text))] = source
        return found

    def typed(self, text: str, share: float) -> bool:
        """Whether a person of the conversation typed all of this: of the words of each sentence so many stand in one of
        theirs, with the same negations."""
        sentences = [found for sentence in SENTENCE.findall(plain(text)) if (found := _meaning(sentence))[0]]
        return bool(sentences) and all(
            any(nots == theirs and len(words & said) >= share * len(words) for said, theirs in self._typed)
            for words, nots in sentences
        )

    def strange_hosts(self, text: str) -> list[str]:
        """The hosts in a text that no person named, and that stand in the workspace or outside."""
        hosts = hosts_in(text)
        unknown = [host for host in hosts if host not in self._hosts] if hosts else []
        many = len(unknown) > MOST_HOSTS
        return [host for host in unknown if many or host in self._their_text]

    def masked(self, text: str) -> str:
        """The text with each copied part replaced by a note."""
        text = plain(text)
        out, end = "", 0
        for span, source in _merged(self.copied(text)):
            out += text[end : span.start] + f"[withheld: {span.end - span.start} characters from {source}]"
            end = span.end
        out += text[end:]
        if len(hosts := self.strange_hosts(out)) > MOST_HOSTS:
            return f"[withheld: {len(out)} characters with {len(hosts)} hosts from outside]"
        for host in hosts:
            out = re.sub(re.escape(host), "[withheld: a host from outside]", out, flags=re.IGNORECASE)
        return out

    def numbers_of(self, named: Named, among: Sequence[int] = ()) -> list[int]:
        """The events that mention it, among these where given."""
        return [number for number, text in _by_number(self.pieces, among).items() if _holds(text, named)]

    def _covered(self, text: str) -> str:
        """The source of most of a text's words, three in a row; of a shorter text, of all in a row."""
        words = _words(text)
        if 0 < len(words) < LEAST:
            holding = [piece for piece in self.pieces if f" {' '.join(words)} " in f" {' '.join(_words(piece.text))} "]
            theirs = (piece.source for piece in holding if piece.trust and piece.by == "other")
            return "" if any(piece.by == "person" for piece in holding) else next(theirs, "")
        covered: set[int] = set()
        source = ""
        for place, key in enumerate(_runs(words, LEAST)):
            if key in self._theirs:
                covered |= {*range(place, place + LEAST)}
                source = self._theirs[key]
        return source if words and len(covered) >= MOST_COVERED * len(words) else ""

    @cached_property
    def _theirs(self) -> dict[int, str]:
        """The source of each key that stands in the workspace or outside, and was not said in clean text."""
        first: dict[int, int] = {}
        for place in reversed(range(len(self.pieces))):
            if _is_theirs(piece := self.pieces[place]):
                text = plain(piece.text)
                for each in dict.fromkeys((text, NUMBERED.sub("", text), *decoded(text))):
                    first.update(zip(_keys(each), repeat(place)))
        clean: set[int] = set()
        for place, piece in enumerate(self.pieces if first else ()):
            if _is_theirs(piece) or piece.trust is Trust.OUTSIDE:
                continue
            keys = first.keys() & _keys(plain(piece.text), SHORT)
            clean |= keys if self._is_clean(place, piece) else {key for key in keys if first[key] > place}
        return {key: self.pieces[place].source for key, place in first.items() if key not in clean}

    def _is_clean(self, place: int, piece: Piece) -> bool:
        """Whether all of it is clean; of other texts only what nobody else said before."""
        if not piece.trust:
            return True
        hosts = self._hosts
        return is_own(piece) and all(hosts.get(each, place) < place for each in hosts_in(plain(piece.text)))

    @cached_property
    def _hosts(self) -> dict[str, int]:
        """The hosts in clean texts, with the place of the first such text."""
        found: dict[str, int] = {}
        for place in reversed(range(len(self.pieces))):
            if not self.pieces[place].trust:
                found.update(zip(hosts_in(plain(self.pieces[place].text)), repeat(place)))
        return found

    @cached_property
    def _their_text(self) -> str:
        return " ".join(piece.text.lower() for piece in self.pieces if piece.trust)

    @cached_property
    def _typed(self) -> dict[tuple[frozenset[str], bool], None]:
        """What each sentence that a person typed is about."""
        texts = [plain(each.text) for each in self.pieces if each.by == "person" and each.trust is not Trust.OUTSIDE]
        sentences = chain.from_iterable((*SENTENCE.findall(text), text) for text in texts)
        return dict.fromkeys(_meaning(sentence) for sentence in sentences)


def _is_theirs(piece: Piece) -> bool:
    return bool(piece.trust) and piece.by == "other"


def is_own(piece: Piece) -> bool:
    """Whether this is a command that the agent ran, and plain work: short, no quoted prose, nothing that a lesson may
    not say."""
    command = piece.text
    prose = re.search(r"""(["'])[^"']*\s[^"']*\s[^"']*\1""", command)
    return piece.command and len(command) <= LONGEST_COMMAND and not prose and not would(command)


def _words(text: str) -> list[str]:
    return [found[0].casefold() for found in WORDS.finditer(plain(text))]


SHORT = tuple((length, ".") for length in range(LEAST + 1, RUN))
"""Runs of words that could be a short sentence of somewhere else, with the end of their keys."""


def _keys(text: str, more: Iterable[tuple[int, str]] = ()) -> Iterator[int]:
    """A key for every run of `LEAST` and of `RUN` words and of `more`, every whole sentence and every opaque word."""
    words = [word.casefold() for word in WORDS.findall(text)]
    runs = (_runs(words, length, end) for length, end in ((LEAST, ""), (RUN, ""), *more))
    return chain(*runs, (key for _, key in chain(_sentences(text), _opaque(text))))


def _runs(words: Sequence[str], length: int, end: str = "") -> Iterator[int]:
    """The key of every run of so many words: hashes, which take a third of the memory of the words."""
    return map(hash, zip(*(words[place:] for place in range(length)), repeat(end)))


def _sentences(text: str) -> Iterator[tuple[Span, int]]:
    """Every whole sentence, from its first to its last word."""
    for match in SENTENCE.finditer(text):
        words = list(WORDS.finditer(text, *match.span()))
        if len(words) >= (RUN - 1 if match[0].lstrip().startswith("#") else LEAST):
            yield Span(words[0].start(), words[-1].end()), hash((*(word[0].casefold() for word in words), "."))


def _opaque(text: str) -> Iterator[tuple[Span, int]]:
    for mixed in MIXED.finditer(text):
        last = min(mixed.start(1), mixed.start(2))
        for match in OPAQUE.finditer(text, *mixed.span()):
            if match.start() <= last:
                yield Span(*match.span()), hash(match[0])


def _meaning(sentence: str) -> tuple[frozenset[str], bool]:
    """The beginnings of the words of a sentence that say what it is about, and whether it denies."""
    words = {found[0].casefold() for found in WORDS.finditer(sentence)}
    return frozenset(word[:6] for word in words - EMPTY - NOT if len(word) > 1 or not word.isascii()), bool(words & NOT)


def _merged(copied: Mapping[Span, str]) -> list[tuple[Span, str]]:
    found: list[tuple[Span, str]] = []
    for span in sorted(copied, key=lambda each: (each.start, each.end)):
        if found and span.start <= found[-1][0].end:
            last, source = found.pop()
            found.append((Span(last.start, max(last.end, span.end)), source))
        else:
            found.append((span, copied[span]))
    return found


def _by_number(pieces: Sequence[Piece], among: Sequence[int]) -> dict[int, str]:
    texts: dict[int, str] = {}
    for piece in pieces:
        if not among or piece.number in among:
            texts[piece.number] = f"{texts.get(piece.number, '')}\n{piece.text}"
    return texts


def _holds(text: str, named: Named) -> bool:
    if named.sort == "command":
        plain = " ".join(text.split())
        return named.text in plain
    return named.text.lower() in text.lower()
