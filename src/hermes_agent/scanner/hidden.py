"""What a person does not see and a model reads: characters without a shape, letters that pass for others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_agent.scanner.finding import Category, Finding, Severity

# The patterns are compiled with their first use: most texts are plain ASCII and need none of them.
# Letters without a shape of their own (tags), which models read as ASCII; the flags of England, Scotland and Wales are
# made of them, after U+1F3F4.
TAGS = "(?<!\U0001f3f4)[\U000e0000-\U000e007f]{2,}"
FLAG = "\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f"
OVERRIDES = "[\u202d\u202e]"
BIDI = "[\u202a\u202b\u2066-\u2068]"
SELECTORS = "[\ufe00-\ufe0e\U000e0100-\U000e01ef]{3,}|[\ufe00-\ufe0f]{4,}"
# Not counted: a byte order mark at the beginning, joiners between emoji and in scripts that need them.
WIDTHLESS = (
    "(?<!^)[\u200b\u2060-\u2064\ufeff\u180e\u3164\u115f\u1160]+"
    "|(?<=[A-Za-z0-9])[\u200c\u200d]+(?=[A-Za-z0-9])|[\u200c\u200d]{2,}"
)
MANY_WIDTHLESS = 8

# Cyrillic and Greek letters that look like Latin ones.
LOOKALIKES = "аеорсухіјѕԁһԛԝАВЕКМНОРСТХІЈЅοαεινρυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"
WORD = r"[^\W\d_]{4,}"
LATIN = r"[A-Za-z]"
OTHER = r"[\u0370-\u03ff\u0400-\u052f]"


def hidden(text: str) -> Iterator[Finding]:
    """Characters that hide text or its order."""
    flags = [found.span() for found in re.finditer(FLAG, text)]
    for found in re.finditer(TAGS, text):
        if not any(start <= found.start() < end for start, end in flags):
            yield _finding(Severity.BLOCK, found, "text in invisible letters")
    for found in re.finditer(OVERRIDES, text):
        yield _finding(Severity.BLOCK, found, "turns the order of letters around")
    for found in re.finditer(SELECTORS, text):
        yield _finding(Severity.BLOCK, found, "data in invisible selectors")
    for found in re.finditer(BIDI, text):
        yield _finding(Severity.NOTE, found, "changes the direction of writing")
    widthless = list(re.finditer(WIDTHLESS, text))
    severity = Severity.WARN if sum(len(found[0]) for found in widthless) >= MANY_WIDTHLESS else Severity.NOTE
    for found in widthless:
        yield _finding(severity, found, "invisible characters")


def lookalikes(text: str) -> Iterator[Finding]:
    """Latin words with letters of another script that look the same."""
    if not re.search(OTHER, text):
        return
    for found in re.finditer(WORD, text):
        word = found[0]
        others = re.findall(OTHER, word)
        if others and len(re.findall(LATIN, word)) > len(others) and all(letter in LOOKALIKES for letter in others):
            yield Finding(
                category=Category.HOMOGLYPH,
                severity=Severity.WARN,
                start=found.start(),
                end=found.end(),
                what=f"`{word}` mixes scripts",
            )


def shown(text: str) -> str:
    """The text with every invisible character written out, as a person should see it."""
    return re.sub(
        "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e01ef\ufe00-\ufe0e]",
        lambda found: f"\\u{{{ord(found[0]):x}}}",
        text,
    )


def _finding(severity: Severity, found: re.Match[str], what: str) -> Finding:
    return Finding(category=Category.HIDDEN, severity=severity, start=found.start(), end=found.end(), what=what)
