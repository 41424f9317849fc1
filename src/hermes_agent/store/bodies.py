"""JSON encoding of typed values for columns; any text survives, also lone surrogates and NULs."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def written(value: object) -> str:
    """The value (dataclasses, enums, containers, numbers, text) as JSON."""
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:  # A lone surrogate cannot be UTF-8: every odd character is escaped instead.
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def plain(body: str) -> Any:  # noqa: ANN401  the caller's `revive` gives it its type
    """Decodes what `written` wrote into dicts, lists, strings and numbers. Raises `ValueError` for anything else."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, TypeError):
        try:
            return json.loads(body)
        except (RecursionError, TypeError) as error:
            raise ValueError(f"no JSON: {error}") from error


def storable(text: str) -> str:
    """Free text without NULs and lone surrogates, which databases refuse in a column."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")
