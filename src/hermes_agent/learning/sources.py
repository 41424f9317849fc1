"""Origin of each part of a conversation, and detection of text that was copied from outside."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import ContextAdded, Entry, MessageTaken, Replied, ToolEnded
from hermes_agent.core.messages import Message, Origin, Role, Text, ToolCall, ToolResult
from hermes_agent.tools.danger.judging import judge
from hermes_agent.tools.danger.verdict import Where

Sort = Literal["command", "path", "host", "tool"]
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


OUTSIDE = frozenset({Origin.TOOL, Origin.WEB, Origin.FILE, Origin.GUEST})
"""Origins whose text is material and never an instruction."""
LIBRARY = frozenset({"skills_list", "skill_view", "skill_manage", "memory"})
"""Tools whose answers are what was learned before, and no news from outside."""
RECALLED = "<memory-context>"
RUN = 6
"""So many words in a row that stand outside too are copied."""
LEAST = 3
"""A whole sentence of so many words or more that stands outside too is copied; a heading needs `RUN` - 1."""
LONGEST_COMMAND = 200

WORDS = re.compile(r"[぀-ヿ㐀-鿿가-힯]|[^\W぀-ヿ㐀-鿿가-힯]+")
SENTENCE = re.compile(r"[^\n.!?:;\"。!?:;]+(?:[.!?:](?=[^\s\"])[^\n.!?:;\"。!?:;]+)*")

NUMBERED = re.compile(r"^[ \t]*(?:[^\s:|]+[:-])?\d+[ \t]*[:|\t.)-][ \t]?", re.MULTILINE)
"""What tools put before a line: its number, and the file that it is from."""


class Side(StrEnum):
    """Trust class of a text: `clean` comes from a person or this program, `model` from the agent, `outside` from
    anything else."""

    CLEAN = "clean"
    MODEL = "model"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A text of the conversation: its event number, its trust class, and its speaker (`user`, a tool's name)."""

    number: int
    side: Side
    text: str
    source: str
    command: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters."""

    start: int
    end: int


def pieces_of(entries: Iterable[Entry]) -> list[Piece]:
    """All texts of a conversation in order. The command of a failed call is not listed as a command."""
    entries = list(entries)
    failed = {entry.event.call_id for entry in entries if isinstance(entry.event, ToolEnded) and entry.event.is_error}
    found: list[Piece] = []
    for entry in entries:
        if isinstance(entry.event, MessageTaken | ContextAdded | Replied | ToolEnded):
            found += _pieces(entry.number, entry.event.message, failed)
    return found


def has_outside(messages: Iterable[Message]) -> bool:
    """Whether these messages contain outside text."""
    return any(is_outside(part, message.role) for message in messages for part in message.parts)


def is_outside(part: object, role: Role) -> bool:
    """Whether a part comes from outside: text of an outside origin, a file, a picture."""
    match part:
        case ToolResult(name=name, parts=parts):
            return name not in LIBRARY and any(is_outside(each, role) for each in parts)
        case Text():
            return is_foreign(part)
        case ToolCall():
            return False
        case _:
            return getattr(part, "kind", "") in {"image", "file"}


def is_foreign(part: Text) -> bool:
    """Whether a text is of outside origin, or contains recalled external memory."""
    return part.origin in OUTSIDE or (part.origin is Origin.RUNTIME and RECALLED in part.text)


def _pieces(number: int, message: Message, failed: frozenset[str] | set[str]) -> Iterator[Piece]:
    for part in message.parts:
        match part:
            case Text(text=text):
                side = Side.OUTSIDE if is_foreign(part) else Side.CLEAN
                side = Side.MODEL if message.role is Role.ASSISTANT else side
                yield Piece(number=number, side=side, text=text, source=message.role.value)
            case ToolCall(name=name, arguments=arguments):
                yield Piece(number=number, side=Side.MODEL, text=name, source=name)
                for key, text in texts_of(arguments):
                    command = key == "command" and part.id not in failed
                    yield Piece(number=number, side=Side.MODEL, text=text, source=name, command=command)
            case ToolResult(name=name, parts=parts):
                for each in parts:
                    if isinstance(each, Text):
                        outside = is_foreign(each) and name not in LIBRARY
                        yield Piece(
                            number=number,
                            side=Side.OUTSIDE if outside else Side.CLEAN,
                            text=each.text,
                            source=name,
                        )
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
    """Origins of the texts of a conversation. What the agent said after reading outside text is outside too, except
    commands that it ran itself, that worked, and that need no approval."""

    workspace: str = ""
    pieces: list[Piece] = field(default_factory=list)
    _outside: dict[str, str] = field(default_factory=dict)
    _clean: set[str] = field(default_factory=set)
    _hosts: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, pieces: Sequence[Piece], workspace: str = "") -> Sources:
        """The sources of these pieces."""
        made = cls(workspace=workspace)
        for piece in pieces:
            made._add(piece)
        return made

    @property
    def any_outside(self) -> bool:
        """Whether there is any outside text."""
        return any(piece.side is Side.OUTSIDE for piece in self.pieces)

    def copied(self, text: str) -> dict[Span, str]:
        """The parts of a text that occur only in outside text, each with its source."""
        found: dict[Span, str] = {}
        for span, key in (*_keys(text), *_short(text)):
            if key in self._outside and key not in self._clean:
                found[span] = self._outside[key]
        return found

    def strange_hosts(self, text: str) -> list[str]:
        """The hosts in a text that are known only from outside."""
        hosts = [each.text for each in named_in(text) if each.sort == "host"]
        outside = " ".join(piece.text.lower() for piece in self.pieces if piece.side is Side.OUTSIDE) if hosts else ""
        return [host for host in hosts if host not in self._hosts and host in outside]

    def masked(self, text: str) -> str:
        """The text with each copied part replaced by a note."""
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

    def backs(self, named: Named) -> bool:
        """Whether a person or the agent itself said or did this."""
        own = (piece for piece in self.pieces if piece.side is not Side.OUTSIDE and _holds(piece.text, named))
        return any(piece.side is Side.CLEAN or not self.copied(piece.text) for piece in own)

    def _add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        keys = {key for _, key in _keys(piece.text)}
        if piece.side is not Side.OUTSIDE:
            keys |= {key for _, key in _short(piece.text)}
        match piece.side:
            case Side.OUTSIDE:
                for key in keys | {key for _, key in _keys(NUMBERED.sub("", piece.text))}:
                    self._outside.setdefault(key, piece.source)
                return
            case Side.CLEAN:
                self._clean |= keys
            case Side.MODEL:
                self._clean |= keys if piece.command and self._is_own(piece.text) else keys - self._outside.keys()
        strange = set(self.strange_hosts(piece.text)) if piece.side is Side.MODEL else set()
        self._hosts |= {each.text for each in named_in(piece.text) if each.sort == "host"} - strange

    def _is_own(self, command: str) -> bool:
        """Whether a command that the agent ran is plain work: short, no quoted prose, no host from outside, nothing
        that a person would have been asked about."""
        if len(command) > LONGEST_COMMAND or re.search(r"""(["'])[^"']*\s[^"']*\s[^"']*\1""", command):
            return False
        if self.strange_hosts(command):
            return False
        verdict = judge(command, Where(folder=self.workspace or "/", writable=(self.workspace or "/", "/tmp")))
        return not verdict.blocked and not verdict.asks


def _keys(text: str) -> Iterator[tuple[Span, str]]:
    """Every run of `RUN` words and every whole sentence, with the words as one key; sentences end theirs with a
    dot."""
    for match in SENTENCE.finditer(text):
        words = [(found.start(), found.end(), found[0].casefold()) for found in WORDS.finditer(match[0])]
        start = match.start()
        least = RUN - 1 if match[0].lstrip().startswith("#") else LEAST
        if len(words) >= least:
            yield Span(start + words[0][0], start + words[-1][1]), " ".join(word for *_, word in words) + "."
        for place in range(len(words) - RUN + 1):
            run = words[place : place + RUN]
            yield Span(start + run[0][0], start + run[-1][1]), " ".join(word for *_, word in run)


def _short(text: str) -> Iterator[tuple[Span, str]]:
    """Every run of words that could be a short sentence of somewhere else, with its key as a sentence."""
    words = [(found.start(), found.end(), found[0].casefold()) for found in WORDS.finditer(text)]
    for length in range(LEAST + 1, RUN):
        for place in range(len(words) - length + 1):
            run = words[place : place + length]
            yield Span(run[0][0], run[-1][1]), " ".join(word for *_, word in run) + "."


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
