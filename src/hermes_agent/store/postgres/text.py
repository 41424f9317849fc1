"""Values as SQL text, for the few statements that must go out together in one message, which takes no parameters."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.store.transaction import Value


def executing(plan: str, params: Sequence[Value]) -> str:
    """The call of a prepared statement with its parameters written into it."""
    return f"EXECUTE {plan}({', '.join(map(literal, params))})"


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
