"""Names of commands in a place, made of the ids of sessions and calls."""

from __future__ import annotations

import hashlib
import re

_NAME = re.compile(r"[^\w-]", re.ASCII)


def exec_name(text: str) -> str:
    """The text as part of an exec id: itself where it may be one, otherwise what is left of it and a hash."""
    plain = _NAME.sub("_", text)
    if plain == text and len(text) <= 120:
        return plain
    return f"{plain[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
