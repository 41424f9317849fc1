"""Context of operations: who asks, on which system, in which conversation; and the system for offline operations."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from hermes_agent.app.household import local_owner, open_store_of
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.store.versions import Author

if TYPE_CHECKING:
    from hermes_agent.app.settings import Settings
    from hermes_agent.app.system import System
    from hermes_agent.host.config import Loaded
    from hermes_agent.host.paths import Home
    from hermes_agent.store.database import Store

HomeSystem: TypeAlias = "OfflineSystem | System"
"""What an operation needs that starts no run."""
S = TypeVar("S", bound="HomeSystem", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineSystem:
    """A home with settings and store open but no scheduler, for commands that only read or change stored data. It opens
    much faster than a full system."""

    home: Home
    loaded: Loaded[Settings]
    store: Store
    clock: Clock
    hermes: None = None

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self.loaded.value

    @property
    def notice(self) -> str:
        """What a person should know first: how the database was found. Empty where nothing."""
        return self.store.notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Generic[S]):
    """One person's access to a system. `where` is the conversation they ask from: what others there could read is
    limited (None: nobody else reads). `session` is their current session, `folder` their working folder. Where a
    program's model writes with their rights (`is_program`), its words count as a member's; `approves`: it may approve.

    Operations raise `HermesError` for what the person may not do; what they may not know is reported as missing.
    """

    system: S
    who: Principal
    where: Conversation | None = None
    session: str = ""
    folder: str = ""
    is_program: bool = False
    approves: bool = True

    @property
    def sees_all(self) -> bool:
        """Whether the person may see everybody's data (the owner)."""
        return self.who.standing is Standing.OWNER

    @property
    def author(self) -> Author:
        """The author recorded in ledgers."""
        return Author.OWNER if self.sees_all else Author.MEMBER

    def check_owner(self, otherwise: str) -> None:
        """Raise `HermesError` with this sentence unless the person is the owner."""
        if not self.sees_all:
            raise HermesError(otherwise)


@asynccontextmanager
async def open_offline(home: Home, loaded: Loaded[Settings], folder: str = "") -> AsyncIterator[Access[OfflineSystem]]:
    """Context manager: the local owner's access to an `OfflineSystem`. Raises `HomeError`, `StoreError`."""
    clock = SystemClock()
    store = await open_store_of(home, loaded.value.store, clock)
    try:
        system = OfflineSystem(home=home, loaded=loaded, store=store, clock=clock)
        yield Access(system=system, who=local_owner(), folder=folder)
    finally:
        await store.close()


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
    given = {each.name: each.default for each in verb.arguments}
    given |= _options(noun, verb, rest)
    if places and places[-1].kind is Kind.WORDS and len(rest) > len(places):
        rest[len(places) - 1 :] = [" ".join(rest[len(places) - 1 :])]
    if places and places[-1].kind is Kind.NAMES and len(rest) >= len(places):
        rest[len(places) - 1 :] = [tuple(rest[len(places) - 1 :])]  # type: ignore[list-item]  # as its act takes it
    given |= {place.name: _read(noun, place, word) for place, word in zip(places, rest, strict=False)}
    if len(rest) > len(places) or any(given[each.name] is None for each in places):
        raise HermesError(noun.usage)
    found = await verb.act(access, **given)
    return (verb.text(found) if found or not verb.nothing else "") or verb.nothing


def typed(text: str) -> list[str]:
    """The words of a line, where `"` joins several. Raises `HermesError`."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.quotes, lexer.escape, lexer.commenters = True, '"', "", ""
    try:
        return list(lexer)
    except ValueError as error:
        raise HermesError(f"The quotes do not match: {text}") from error


def _options(noun: Noun, verb: Verb, words: list[str]) -> dict[str, Any]:
    """Take the options of a verb out of the words. Raises `HermesError` for one without its value."""
    flags, given = {each.flag: each for each in verb.arguments if each.flag}, dict[str, Any]()
    for at in reversed([number for number, word in enumerate(words) if word.partition("=")[0] in flags]):
        flag, has_value, value = words.pop(at).partition("=")
        if flags[flag].kind is Kind.SWITCH:
            given[flags[flag].name] = True
            continue
        if not has_value and at == len(words):
            raise HermesError(f"Say what {flag} is. {noun.usage}")
        given[flags[flag].name] = _read(noun, flags[flag], value if has_value else words.pop(at))
    return given


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
