"""Class of each text of a conversation, and detection of text that was copied out of the workspace."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import ContextAdded, Entry, MessageTaken, PrefixFrozen, Replied, ToolEnded
from hermes_agent.core.messages import Message, Origin, Part, Role, Text, ToolCall, ToolResult, Trust, trust_of
from hermes_agent.learning.wording import decoded, plain, would

Sort = Literal["command", "path", "host", "tool"]
By = Literal["person", "model", "other"]
FENCE = re.compile(r"^```[ \t]*(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELLS = frozenset({"", "sh", "bash", "shell", "console", "zsh"})
TICKED = re.compile(r"`([^`\n]{2,300})`")
PROMPTED = re.compile(r"^\s*[$>]\s+(\S.*)$", re.MULTILINE)
PATH = re.compile(r"(?<![\w./~-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w./-])[\w-]+\.[a-z]\w{0,4}(?![\w/])")
HOST = re.compile(
    r"(?:https?|ssh|ftp|wss?|git)://([^\s/'\"`)>\]]+)"
    r"|[\w.+-]+@((?:[\w-]+\.)+[a-z]{2,24})"
    r"|(?<![\w.@/-])((?:[\w-]+\.)+(?:com|org|net|io|dev|app|ai|co|example|test|info|xyz|ru|cn|de|uk|me|sh|gg|tk|site|"
    r"online|cloud|onion))(?![\w-])"
    r"|(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])",
    re.IGNORECASE,
)
SLOT = re.compile(r"<[^<>]*>|\$\{?\w+\}?|\{\{?[\w ]+\}?\}|\[[^\[\]]*\]|…|\.\.\.")
"""What stands for a value in a command: it cannot occur as it is written."""
WORD = re.compile(r"[a-zA-Z][\w.+-]*")
LONGEST = 300


class Named(NamedTuple):
    """One command, path, host or tool that a text names."""

    sort: Sort
    text: str


def named_in(text: str, tools: Collection[str] = ()) -> tuple[Named, ...]:
    """The commands, paths, hosts and tools that a text names, each once. `tools` are the existing tool names."""
    found = [Named("command", each) for each in commands_in(text)]
    hosts = [next(filter(None, match.groups())).lower().rstrip(".:") for match in HOST.finditer(text)]
    found += [Named("host", host.partition("@")[2] or host) for host in hosts]
    found += [Named("path", path) for path in _paths(text) if path.lower() not in hosts]
    ticked = {match[1] for match in TICKED.finditer(text)}
    found += [Named("tool", name) for name in sorted(ticked & set(tools))]
    return tuple(dict.fromkeys(found))


def commands_in(text: str) -> list[str]:
    """The commands in a text: lines of shell blocks, and text in backticks or after a prompt of at least two words,
    the first of which could be a program."""
    found: list[str] = []
    for language, body in FENCE.findall(text):
        if language.lower() in SHELLS:
            found += [line.strip().removeprefix("$ ") for line in body.splitlines()]
    rest = FENCE.sub("", text)
    found += [match[1].strip() for match in TICKED.finditer(rest)]
    found += [match[1].strip() for match in PROMPTED.finditer(rest)]
    return [each for each in dict.fromkeys(found) if _is_command(each)]


def stretches(command: str) -> list[str]:
    """The fixed parts of a command, between its slots."""
    return [" ".join(part.split()) for part in SLOT.split(command) if len(part.split()) > 0 and WORD.search(part)]


def _is_command(text: str) -> bool:
    words = text.split()
    return (
        len(words) > 1
        and len(text) <= LONGEST
        and not text.startswith("#")
        and bool(WORD.match(words[0].lstrip("./~")))
    )


def _paths(text: str) -> list[str]:
    plain = re.sub(r"\w+://\S+", " ", text)
    found = [match[0].rstrip(".,:;") for match in PATH.finditer(plain)]
    return [path for path in dict.fromkeys(found) if len(path) > 2 and WORD.search(path) and not _is_prose(path)]


def _is_prose(path: str) -> bool:
    """`and/or`, `e.g`, `1.2`: no paths."""
    if path.startswith(("/", "./", "../", "~")):
        return False
    if "/" not in path:
        return path.lower() in {"e.g", "i.e", "etc"} or path.split(".")[-1].lower() in {"g", "e"}
    return "." not in path and "_" not in path and "-" not in path and path.count("/") < 2  # and/or


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
OPAQUE = re.compile(r"(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9]{20,}")
"""A word that may say anything to whoever decodes it."""
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


@dataclass(slots=True)
class Sources:
    """The texts of a conversation by class. Words are compared to see what of the workspace was copied. What is from
    outside teaches nothing, whatever it says and whoever repeats it."""

    pieces: list[Piece] = field(default_factory=list)
    prompt: Trust = Trust.CLEAN
    _theirs: dict[str, str] = field(default_factory=dict)
    _clean: set[str] = field(default_factory=set)
    _hosts: set[str] = field(default_factory=set)
    _typed: list[tuple[frozenset[str], bool]] = field(default_factory=list)

    @classmethod
    def of(cls, pieces: Sequence[Piece], prompt: Trust = Trust.CLEAN) -> Sources:
        """The sources of these pieces, below a prompt of that class."""
        made = cls(prompt=prompt)
        for piece in pieces:
            made._add(piece)
        return made

    @property
    def trust(self) -> Trust:
        """The worst class of all."""
        return max((self.prompt, *(piece.trust for piece in self.pieces)))

    def copied(self, text: str) -> dict[Span, str]:
        """The parts of a text that stand in the workspace alone, each with its source."""
        text = plain(text)
        found: dict[Span, str] = {}
        joined = LINE_END.sub(lambda found: " " * len(found[0]), text)
        for span, key in (*_keys(text), *_keys(joined), *_short(text)):
            if key in self._theirs and key not in self._clean:
                found[span] = self._theirs[key]
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
        hosts = [each.text for each in named_in(text) if each.sort == "host"]
        theirs = " ".join(piece.text.lower() for piece in self.pieces if piece.trust) if hosts else ""
        return [host for host in hosts if host not in self._hosts and host in theirs]

    def masked(self, text: str) -> str:
        """The text with each copied part replaced by a note."""
        text = plain(text)
        out, end = "", 0
        for span, source in _merged(self.copied(text)):
            out += text[end : span.start] + f"[withheld: {span.end - span.start} characters from {source}]"
            end = span.end
        out += text[end:]
        for host in self.strange_hosts(out):
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
        for place in range(len(words) - LEAST + 1):
            key = " ".join(words[place : place + LEAST])
            if key in self._theirs and key not in self._clean:
                covered |= set(range(place, place + LEAST))
                source = self._theirs[key]
        return source if words and len(covered) >= MOST_COVERED * len(words) else ""

    def _add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        text = plain(piece.text)
        if piece.trust and piece.by == "other":
            texts = [text, NUMBERED.sub("", text), *decoded(text)]
            for key in {key for each in texts for _, key in (*_keys(each), *_runs(each, LEAST))}:
                self._theirs.setdefault(key, piece.source)
            return
        if piece.trust is Trust.OUTSIDE:
            return
        keys = {key for _, key in (*_keys(text), *_runs(text, LEAST), *_short(text))}
        if piece.by == "person":
            self._typed += [_meaning(sentence) for sentence in (*SENTENCE.findall(text), text)]
        strange: set[str] = set()
        if piece.trust is Trust.WORKSPACE:
            strange = set(self.strange_hosts(text))
            keys = keys if is_own(piece) and not strange else keys - self._theirs.keys()
        self._clean |= keys
        self._hosts |= {each.text for each in named_in(text) if each.sort == "host"} - strange


def is_own(piece: Piece) -> bool:
    """Whether this is a command that the agent ran, and plain work: short, no quoted prose, nothing that a lesson may
    not say."""
    command = piece.text
    prose = re.search(r"""(["'])[^"']*\s[^"']*\s[^"']*\1""", command)
    return piece.command and len(command) <= LONGEST_COMMAND and not prose and not would(command)


def _words(text: str) -> list[str]:
    return [found[0].casefold() for found in WORDS.finditer(plain(text))]


def _keys(text: str) -> Iterator[tuple[Span, str]]:
    """Every run of `RUN` words, every opaque word and every whole sentence, with the words as one key; sentences end
    theirs with a dot."""
    for match in SENTENCE.finditer(text):
        words = [(found.start(), found.end(), found[0].casefold()) for found in WORDS.finditer(match[0])]
        least = RUN - 1 if match[0].lstrip().startswith("#") else LEAST
        if len(words) >= least:
            start = match.start()
            yield Span(start + words[0][0], start + words[-1][1]), " ".join(word for *_, word in words) + "."
    yield from _runs(text, RUN)
    yield from ((Span(found.start(), found.end()), found[0]) for found in OPAQUE.finditer(text))


def _runs(text: str, length: int, end: str = "") -> Iterator[tuple[Span, str]]:
    """Every run of so many words, wherever lines and sentences end."""
    words = [(found.start(), found.end(), found[0].casefold()) for found in WORDS.finditer(text)]
    for place in range(len(words) - length + 1):
        run = words[place : place + length]
        yield Span(run[0][0], run[-1][1]), " ".join(word for *_, word in run) + end


def _short(text: str) -> Iterator[tuple[Span, str]]:
    """Every run of words that could be a short sentence of somewhere else, with its key as a sentence."""
    for length in range(LEAST + 1, RUN):
        yield from _runs(text, length, ".")


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
