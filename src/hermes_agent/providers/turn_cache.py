"""The encoded turns of one conversation, kept from request to request so that only what is new is encoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes_agent.core.messages import Message, Part
from hermes_agent.providers.pieces import estimate
from hermes_agent.providers.route import Route
from hermes_agent.providers.sight import ANY_PICTURE, PictureRules, Sight
from hermes_agent.providers.tool_schemas import PLAIN, ToolRules
from hermes_agent.providers.verifier import Transcript, Turn


class TurnCache:
    """Verified turns as JSON fragments, user and assistant in turn, the last one a user's (or the beginning of the
    reply that the model goes on with).

    `write` encodes one turn. A turn is encoded again only when something was added to it.
    """

    def __init__(
        self,
        route: Route,
        write: Callable[[Turn], bytes],
        pictures: PictureRules = ANY_PICTURE,
        rules: ToolRules = PLAIN,
    ) -> None:
        sight = Sight(images=route.facts.images, files=route.facts.files, rules=pictures)
        self._transcript = Transcript(maker=route.name, sight=sight, rules=rules)
        self._write = write
        self._encoded: list[bytes] = []
        self._tokens: list[int] = []

    @property
    def call_ids(self) -> set[str]:
        """The id of every call in the messages."""
        return self._transcript.call_ids

    @property
    def turns(self) -> list[Turn]:
        """The verified turns, without the ending that a request may need."""
        return self._transcript.turns

    def forget(self) -> None:
        """Leave out the thinking of the messages so far; the next `follow` encodes everything anew."""
        self._transcript.forget()

    def follow(self, messages: Sequence[Message], *, prefill: bool = False) -> tuple[list[bytes], int]:
        """The fragments of a request with these messages, and their size in tokens by bytes / 4."""
        transcript = self._transcript
        transcript.follow(messages)
        del self._encoded[transcript.fresh :], self._tokens[transcript.fresh :]
        for turn in transcript.turns[transcript.fresh :]:
            self._add(turn, self._encoded, self._tokens)
        transcript.mark_written()
        keep, ending = transcript.ending(prefill=prefill)
        fragments, tokens = self._encoded[:keep], self._tokens[:keep]
        for turn in ending:
            self._add(turn, fragments, tokens)
        return fragments, sum(tokens)

    def _add(self, turn: Turn, fragments: list[bytes], tokens: list[int]) -> None:
        fragment = self._write(turn)
        fragments.append(fragment)
        tokens.append(estimate(fragment, _all_parts(turn)))


def joined(head: bytes, fragments: list[bytes], tail: bytes) -> bytes:
    """`head`, the fragments with commas between them, `tail`: copied once, because a long conversation is megabytes."""
    first, *others = fragments
    if not others:
        return b"".join((head, first, tail))
    others[-1] += tail
    return b",".join((head + first, *others))


def _all_parts(turn: Turn) -> list[Part]:
    return [*turn.parts, *(part for result in turn.results for part in result.parts)]
