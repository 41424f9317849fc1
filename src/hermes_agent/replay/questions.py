"""What differs between a question and the recorded one, in a sentence; and how alike two questions are."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from hermes_agent.core.messages import Message, Origin
from hermes_agent.core.model import ModelRequest, Prefix
from hermes_agent.core.section import tools_text
from hermes_agent.replay.cassette import Cassette, Digests, Redact, digest
from hermes_agent.replay.lines import Asked, plain_of
from hermes_agent.store.bodies import written

SHOWN = 60
LOOKED_AT = 2_000
"""Characters that are compared for likeness."""


class Questions:
    """What is asked now, beside what was asked then."""

    def __init__(self, cassette: Cassette, redact: Redact) -> None:
        self._cassette = cassette
        self._redact = redact
        self._digests = Digests(redact)
        self._prefixes: dict[str, str] = {}

    def ids(self, messages: Sequence[Message]) -> tuple[str, ...]:
        """The digests of the messages."""
        return self._digests.follow(messages)[1]

    def difference(self, request: ModelRequest, asked: Asked) -> str:
        """The first difference to the recorded question, as a sentence; empty where there is none."""
        if words := self._prefix_difference(request.prefix, asked.prefix):
            return words
        return _messages_difference(*self._messages(request, asked)) or _settings_difference(request, asked)

    def said_otherwise(self, request: ModelRequest, asked: Asked) -> str:
        """As `difference`, of what persons, models and tools said alone: the prompt and what the runtime tells are of
        now."""
        both = self._messages(request, asked)
        return _messages_difference(*([each for each in messages if _is_said(each[0])] for messages in both))

    def _messages(self, request: ModelRequest, asked: Asked) -> tuple[list[tuple[Message, str]], ...]:
        """The messages of now and of then, each with its digest."""
        now = list(zip(request.messages, self.ids(request.messages), strict=True))
        return now, [(self._cassette.messages[id_], id_) for id_ in self._cassette.shown(asked.n)]

    def likeness(self, request: ModelRequest, asked: Asked) -> float:
        """How alike the questions are, from 0 to 1: by the messages that they share and the words of the last one."""
        now, then = self.ids(request.messages), self._cassette.shown(asked.n)
        if now == then:
            return 1.0
        shared = len(set(now) & set(then)) / max(len(now), len(then), 1)
        if not now or not then:
            return shared / 2
        last, recorded = _text(request.messages[-1]), _text(self._cassette.messages[then[-1]])
        return 0.45 * shared + 0.54 * likeness(last, recorded)

    def _prefix_difference(self, now: Prefix, then: str) -> str:
        if now.hash not in self._prefixes:
            self._prefixes[now.hash] = digest([now.system, now.tools], self._redact)
        if self._prefixes[now.hash] == then:
            return ""
        was = self._cassette.prefixes[then]
        if self._redact(now.system) != was.system:
            return _between("the system prompt", was.system, self._redact(now.system))
        names, recorded = [tool.name for tool in now.tools], [tool.name for tool in was.tools]
        if names != recorded:
            return f"the tools: {', '.join(recorded)} were recorded, now there are {', '.join(names)}"
        return _between("the tools' schemas", tools_text(was.tools), tools_text(now.tools))


def likeness(one: str, other: str) -> float:
    """How alike the beginnings of two texts are, from 0 to 1."""
    return float(SequenceMatcher(None, one[:LOOKED_AT], other[:LOOKED_AT], autojunk=False).ratio())


def _is_said(message: Message) -> bool:
    return any(getattr(part, "origin", None) is not Origin.RUNTIME for part in message.parts)


def _messages_difference(now: Sequence[tuple[Message, str]], then: Sequence[tuple[Message, str]]) -> str:
    for place, ((message, id_), (was, recorded)) in enumerate(zip(now, then, strict=False)):
        if id_ != recorded:
            return _between(f"message {place + 1}", _text(was), _text(message))
    if len(now) != len(then):
        return f"the number of messages: {len(then)} were recorded, now there are {len(now)}"
    return ""


def _settings_difference(request: ModelRequest, asked: Asked) -> str:
    for name in ("effort", "use_tools", "max_output"):
        now, then = getattr(request, name), getattr(asked, name)
        if now != then:
            return f"`{name}`: recorded {then}, now {now}"
    return ""


def _text(message: Message) -> str:
    return message.text or written(plain_of(message.parts))


def _between(what: str, then: str, now: str) -> str:
    place = next((i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
    start = max(0, place - SHOWN // 3)
    return (
        f"{what} at character {place + 1}: recorded {then[start : start + SHOWN]!r}, now {now[start : start + SHOWN]!r}"
    )
