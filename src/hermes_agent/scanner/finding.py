"""Findings of the scanner: position, category and severity."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from hermes_agent.core.dataclass import dataclass


class Category(StrEnum):
    """Category of a scanner finding."""

    INJECTION = "injection"
    EXFILTRATION = "exfiltration"
    HIDDEN = "hidden text"
    HOMOGLYPH = "look-alike letters"
    SECRET = "secret"
    PERSISTENCE = "persistence"


class Severity(IntEnum):
    """Severity of a finding. `NOTE`: worth a look, also found in honest files. `WARN`: the text is not learned or
    remembered. `BLOCK`: the text does not reach a prompt."""

    NOTE = 1
    WARN = 2
    BLOCK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of the scanner: `start` and `end` are positions in the scanned text; `what` describes it in a few
    words."""

    category: Category
    severity: Severity
    start: int
    end: int
    what: str
