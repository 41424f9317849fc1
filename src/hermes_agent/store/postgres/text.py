"""PostgreSQL literals: parameters written into statements that must go out in one message, tsvectors and tsqueries."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.store.finding.terms import Phrase, Term
from hermes_agent.store.transaction import Value

LAST_POSITION = 16_383  # Later ones are all taken for this one.


def executing(plan: str, params: Sequence[Value]) -> str:
    """An EXECUTE of a prepared statement with literal parameters."""
    return f"EXECUTE {plan}({', '.join(map(literal, params))})"


def literal(value: Value) -> str:
    """The value as an SQL literal, escaped for either setting of `standard_conforming_strings`."""
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


def vector_of(terms: Sequence[Term]) -> str:
    """The tokens as the text of a tsvector with positions; they hold no quotes, and no parser changes them."""
    return " ".join(f"'{term}':{min(place, LAST_POSITION)}" for place, term in enumerate(terms, 1))


def query_of(phrase: Phrase) -> str:
    """A phrase as the text of a tsquery."""
    return "(" + " <-> ".join(f"'{term}'" for term in phrase) + ")"
