"""Values as SQL text, for the few statements that must go out together in one message, which takes no parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes_agent.store.transaction import Value

_PARAMETER = re.compile(r"\$(\d+)")


def inlined(sql: str, params: Sequence[Value]) -> str:
    """The statement with its parameters written into it."""
    return _PARAMETER.sub(lambda found: literal(params[int(found[1]) - 1]), sql)


def literal(value: Value) -> str:
    """The value as PostgreSQL reads it. Texts are escaped for either setting of `standard_conforming_strings`."""
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"decode('{value.hex()}', 'hex')"
        case str():
            quoted = value.replace("\\", "\\\\").replace("'", "''")
            return f"E'{quoted}'"
        case _:
            return repr(value)
