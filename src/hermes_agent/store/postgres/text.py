"""Values as text that PostgreSQL reads: in statements that must go out together in one message, which takes no
parameters, and as full text."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.store.finding.terms import Phrase, Term
from hermes_agent.store.transaction import Value

LAST_POSITION = 16_383  # Later ones are all taken for this one.


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


def vector_of(terms: Sequence[Term]) -> str:
    """The terms as the text of a tsvector, with their positions; they hold no quotes, and no parser sees them."""
    return " ".join(f"'{term}':{min(place, LAST_POSITION)}" for place, term in enumerate(terms, 1))


def query_of(phrase: Phrase) -> str:
    """Terms that follow each other, as the text of a tsquery."""
    return "(" + " <-> ".join(f"'{term}'" for term in phrase) + ")"
