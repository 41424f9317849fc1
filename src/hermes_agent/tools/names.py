"""Names of commands in a place, made of the ids of sessions and calls."""

from __future__ import annotations

import hashlib
import re

LENT = ".lent"
LENT_IN = "secrets"
"""The folder of the cache where secrets stand while a command has them."""
_NAME = re.compile(r"[^\w-]", re.ASCII)


def exec_name(text: str) -> str:
    """The text as part of an exec id: itself where it may be one, otherwise what is left of it and a hash."""
    plain = _NAME.sub("_", text)
    if plain == text and len(text) <= 120:
        return plain
    return f"{plain[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def lent_name(key: str, name: str) -> str:
    """The name of the file in which a command of the call `key` is given the value of a secret."""
    return f"{exec_name(key)}-{name}{LENT}"


def lent_in(command: str, key: str) -> tuple[str, ...]:
    """The files of that kind which a command of this call names."""
    if LENT not in command:
        return ()  # making the pattern takes longer than all else here
    return tuple(dict.fromkeys(re.findall(rf"'([^']*/{exec_name(key)}-\w+{re.escape(LENT)})'", command)))
