"""Secrets taken out of what a cassette holds, before a line is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes_agent.core.model import TextDelta, ThinkingDelta
from hermes_agent.core.section import short_hash
from hermes_agent.replay.cassette.lines import Piece, plain_of
from hermes_agent.store.bodies import written

Redact = Callable[[str], str]
BETWEEN = "\n\0\n"
"""What stands between texts that are looked at together: no secret goes over it."""


def without_secrets(plain: Any, redact: Redact) -> Any:  # noqa: ANN401  any JSON value, and the same shape again
    """The JSON value with every text in it, keys too, redacted: as texts, since JSON's escapes would hide a secret."""
    joined = BETWEEN.join(_texts(plain))
    return plain if redact(joined) == joined else _redacted(plain, redact)


def _texts(plain: Any) -> Iterator[str]:  # noqa: ANN401  any JSON value
    match plain:
        case str():
            yield plain
        case Mapping():
            for key, value in plain.items():
                yield key
                yield from _texts(value)
        case list() | tuple():
            for value in plain:
                yield from _texts(value)
        case _:
            return


def _redacted(plain: Any, redact: Redact) -> Any:  # noqa: ANN401  any JSON value, and the same shape again
    match plain:
        case str():
            return redact(plain)
        case Mapping():
            return {redact(key): _redacted(value, redact) for key, value in plain.items()}
        case list() | tuple():
            return [_redacted(value, redact) for value in plain]
        case _:
            return plain


def digest(value: object, redact: Redact) -> str:
    """What a value is known by in a cassette: the digest of it as it is written there."""
    return short_hash(written(without_secrets(plain_of(value), redact)))


def whole_words(pieces: Sequence[Piece], redact: Redact) -> tuple[Piece, ...]:
    """The pieces of an answer so that no secret is spread over several of them: where the joined words hold one, they
    stand redacted in the first piece of their kind, and the others are empty."""
    for kind in (TextDelta, ThinkingDelta):
        joined = "".join(piece.item.text for piece in pieces if isinstance(piece.item, kind))
        told = redact(joined)
        if told != joined:
            pieces = _moved(pieces, kind, told)
    return tuple(pieces)


def _moved(pieces: Sequence[Piece], kind: type[TextDelta | ThinkingDelta], told: str) -> list[Piece]:
    moved: list[Piece] = []
    for piece in pieces:
        if isinstance(piece.item, kind):
            piece = replace(piece, item=kind(text=told))
            told = ""
        moved.append(piece)
    return moved
