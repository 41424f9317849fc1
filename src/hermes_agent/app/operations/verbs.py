"""Declarative operations: command groups with subcommands and arguments, from which CLI commands (`hermes learn undo
3`) and slash commands (`/learn undo 3`) are built."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any

from hermes_agent.app.operations.access import Access
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError

RENAMED = {
    "approvals withdraw": "revoke",
    "bundles create": "add",
    "bundles delete": "remove",
    "cron create": "add",
    "kanban create": "add",
    "kanban delete": "remove",
    "trust withdraw": "remove",
}
"""Words of the version before and of other programs, which still work, and what is called now."""


class Kind(StrEnum):
    """Type of an operation's argument; `since` is a time span or a date, parsed to seconds since 1970, `words` a text
    that takes the rest of a slash command, `names` one or more of them as a sequence."""

    TEXT = "text"
    NUMBER = "number"
    COUNT = "count"
    SKILL = "skill"
    SINCE = "since"
    SWITCH = "switch"
    WORDS = "words"
    NAMES = "names"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a subcommand (`Verb`), by its parameter name. With a `flag` it is a CLI option and takes its
    default in a slash command; a `default` makes it optional."""

    name: str
    kind: Kind = Kind.TEXT
    metavar: str = ""
    flag: str = ""
    help: str = ""
    default: str | int | float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One subcommand of a command group (`Noun`). `act` takes an access and the arguments by name, `text` formats its
    result, `nothing` is shown for an empty one."""

    name: str
    help: str
    act: Callable[..., Awaitable[Any]]
    text: Callable[[Any], str] = str
    arguments: tuple[Argument, ...] = ()
    nothing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A command group, such as `learn`, with its subcommands; the first one is the default in a slash command. An
    `offline` group needs only an `OfflineSystem`."""

    name: str
    short_help: str
    help: str
    verbs: tuple[Verb, ...]
    offline: bool = False

    def has(self, word: str) -> bool:
        """Whether it has a verb of that name, or had one."""
        return RENAMED.get(f"{self.name} {word}", word) in (each.name for each in self.verbs)

    @property
    def usage(self) -> str:
        """Usage text for slash commands."""
        return "Say " + ", ".join(f"`{_usage(self.name, verb)}`" for verb in self.verbs) + "."

    @property
    def arguments(self) -> str:
        """The verbs in the form of a usage hint."""
        return f"[{'|'.join(verb.name for verb in self.verbs)}]"


def verb(
    name: str,
    about: str,
    act: Callable[..., Awaitable[Any]],
    *arguments: Argument,
    text: Callable[[Any], str] = str,
    nothing: str = "",
) -> Verb:
    """Build a `Verb`."""
    return Verb(name=name, help=about, act=act, text=text, arguments=arguments, nothing=nothing)


def place(name: str, kind: Kind = Kind.TEXT, default: str | int | None = None, metavar: str = "") -> Argument:
    """A positional argument; optional if it has a default."""
    return Argument(name=name, kind=kind, default=default, metavar=metavar)


def option(name: str, flag: str, about: str, kind: Kind = Kind.SWITCH, default: str | float = False) -> Argument:
    """A CLI option."""
    return Argument(name=name, flag=flag, help=about, kind=kind, default=default)


async def say_verb(noun: Noun, access: Access[Any], words: Sequence[str]) -> str:
    """Run a slash command's verb and return its result as text. Raises `HermesError`."""
    name, *rest = words or [noun.verbs[0].name]
    name = RENAMED.get(f"{noun.name} {name}", name)
    verb = next((each for each in noun.verbs if each.name == name), None)
    if verb is None:
        raise HermesError(noun.usage)
    places = [each for each in verb.arguments if not each.flag]
    if places and places[-1].kind is Kind.WORDS and len(rest) > len(places):
        rest[len(places) - 1 :] = [" ".join(rest[len(places) - 1 :])]
    if places and places[-1].kind is Kind.NAMES and len(rest) >= len(places):
        rest[len(places) - 1 :] = [tuple(rest[len(places) - 1 :])]  # type: ignore[list-item]  # as its act takes it
    given = {each.name: each.default for each in verb.arguments}
    given |= {place.name: _read(noun, place, word) for place, word in zip(places, rest, strict=False)}
    if len(rest) > len(places) or any(given[each.name] is None for each in places):
        raise HermesError(noun.usage)
    found = await verb.act(access, **given)
    return (verb.text(found) if found or not verb.nothing else "") or verb.nothing


def _read(noun: Noun, place: Argument, word: str) -> str | int:
    if place.kind not in (Kind.NUMBER, Kind.COUNT):
        return word
    if not word.isdecimal():
        raise HermesError(f"`{word}` is not a number. {noun.usage}")
    return int(word)


def _usage(noun: str, verb: Verb) -> str:
    places = [each for each in verb.arguments if not each.flag]
    words = [f"[{_label(each)}]" if each.default is not None else _label(each) for each in places]
    return " ".join((f"/{noun}", verb.name, *words))


def _label(place: Argument) -> str:
    return place.metavar or place.name.upper()
