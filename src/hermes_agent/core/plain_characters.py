"""Characters that people and models write for each other: typographic quotes, dashes and spaces as plain ones."""

from __future__ import annotations

# One character for one, so that a position in the plainer text is the same position in the text.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000", " "),
    }
)


def plainer(text: str) -> str:
    """The text with plain quotes, dashes and spaces; of the same length."""
    return text if text.isascii() else text.translate(_PLAIN)
