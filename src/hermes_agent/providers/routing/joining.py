"""Continues a reply that broke off: the request to go on, and the joining of the pieces into one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import (
    CallDelta,
    Delta,
    Message,
    ModelRequest,
    Origin,
    Reply,
    Role,
    Text,
    TextDelta,
    Thinking,
    said,
)

# A text that broke off earlier is written anew: its few words say too little of how the whole was to be.
LEAST_WORDS = 20
SHOWN_END = 120
LEAST_OVERLAP = 6
# So many characters are looked at before it is decided what of a continuation repeats the text before it.
LOOKED_AT = 80

GO_ON = (
    "(The connection broke in the middle of your reply. Its last words were: «{end}». Go on with exactly the character "
    "that comes next, also if it is a space or the rest of a word. Repeat nothing and say nothing about the break.)"
)


def worth_keeping(words: str) -> bool:
    """Whether a broken reply is long enough to be continued instead of repeated."""
    return len(words.strip()) >= LEAST_WORDS


def going_on(request: ModelRequest, words: str, *, prefill: bool) -> ModelRequest:
    """The request for the rest of a reply that began with `words`."""
    begun = Message(role=Role.ASSISTANT, parts=(Text(text=words.rstrip()),))
    if prefill:
        return replace(request, messages=[*request.messages, begun], prefill=True)
    ask = said(GO_ON.format(end=words[-SHOWN_END:]), Origin.RUNTIME)
    return replace(request, messages=[*request.messages, begun, ask])


class Continuation:
    """Filters a streamed continuation to its new text. A model asked to continue may start over or repeat its last
    words. With `exact` (the text was prefilled) it cannot, and only a duplicate blank is dropped."""

    def __init__(self, words: str, *, exact: bool) -> None:
        self._words = words
        self._exact = exact
        self._held = ""
        self._settled = False

    def feed(self, text: str) -> str:
        """The new words that this piece completes."""
        if self._settled:
            return text
        self._held += text
        if not self._held.strip() or (not self._exact and self._undecided()):
            return ""
        return self.finish()

    def finish(self) -> str:
        """The text held back, without repetitions."""
        if self._settled:
            return ""
        self._settled = True
        held, self._held = self._held, ""
        if not self._exact:
            repeated = _repeated(self._words, held)
            if repeated:
                return held[repeated:]
        return held.lstrip() if self._words[-1:].isspace() else held

    def _undecided(self) -> bool:
        return len(self._held) < LOOKED_AT or (
            len(self._held) < len(self._words) and self._words.startswith(self._held)
        )


def _repeated(words: str, more: str) -> int:
    """How many characters at the beginning of `more` say again what `words` said."""
    if more.startswith(words):
        return len(words)
    if words.startswith(more) and len(more) >= LOOKED_AT:
        return len(more)
    longest = min(len(words), len(more), LOOKED_AT)
    return next((size for size in range(longest, LEAST_OVERLAP - 1, -1) if words.endswith(more[:size])), 0)


def joined(words: str, reply: Reply, *, exact: bool) -> Reply:
    """The reply with the earlier words joined to its first text."""
    more_words = Continuation(words, exact=exact)
    more = "".join(part.text for part in reply.message.parts if isinstance(part, Text))
    whole = Text(text=words + more_words.feed(more) + more_words.finish())
    thoughts = [part for part in reply.message.parts if isinstance(part, Thinking)]
    others = [part for part in reply.message.parts if not isinstance(part, Thinking | Text)]
    return replace(reply, message=Message(role=Role.ASSISTANT, parts=(*thoughts, whole, *others)))


@dataclass(slots=True, kw_only=True)
class Draft:
    """A reply across all of its attempts: `words` is the text of the broken attempt that is being continued."""

    words: str = ""
    _spoken: list[str] = field(default_factory=list)
    _calls: bool = False
    _exact: bool = False
    _continuation: Continuation | None = None

    def begin(self, *, exact: bool) -> None:
        """Start another attempt."""
        self._spoken, self._calls, self._exact = [], False, exact
        self._continuation = Continuation(self.words, exact=exact) if self.words else None

    def hear(self, deltas: Sequence[Delta]) -> Sequence[Delta]:
        """The deltas to show: without words already shown."""
        shown: list[Delta] = []
        for delta in deltas:
            match delta:
                case TextDelta(text=text):
                    self._spoken.append(text)
                    new = text if self._continuation is None else self._continuation.feed(text)
                    if new:
                        shown.append(delta if new is text else TextDelta(text=new))
                    continue
                case CallDelta():
                    self._calls = True
                case _:
                    pass
            shown.append(delta)
        return shown

    def end(self, reply: Reply) -> Sequence[TextDelta | Reply]:
        """The whole reply, after the words that were held back."""
        if self._continuation is None:
            return (reply,)
        rest = self._continuation.finish()
        whole = joined(self.words, reply, exact=self._exact)
        return (TextDelta(text=rest), whole) if rest else (whole,)

    def broke(self) -> bool:
        """Record a failed attempt; whether the next one continues it. A started tool call voids its words."""
        spoken = "".join(self._spoken)
        if self.words and spoken:
            more_words = Continuation(self.words, exact=self._exact)
            spoken = self.words + more_words.feed(spoken) + more_words.finish()
        spoken = spoken or self.words
        self.words = "" if self._calls or not worth_keeping(spoken) else spoken
        return bool(self.words)

    def held_back(self) -> Sequence[TextDelta]:
        """The words of a broken attempt that were withheld as a possible repetition."""
        rest = "" if self._continuation is None else self._continuation.finish()
        return (TextDelta(text=rest),) if rest and self.words else ()
