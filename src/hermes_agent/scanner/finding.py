"""What the scanner finds: where, of which kind, how bad."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from hermes_agent.core.dataclass import dataclass


class Category(StrEnum):
    """What a finding is about."""

    INJECTION = "injection"
    EXFILTRATION = "exfiltration"
    HIDDEN = "hidden text"
    HOMOGLYPH = "look-alike letters"
    SECRET = "secret"
    PERSISTENCE = "persistence"


class Severity(IntEnum):
    """`NOTE`: also found in honest files, worth a look. `WARN`: nothing of this kind is learned or remembered. `BLOCK`:
    does not reach a prompt."""

    NOTE = 1
    WARN = 2
    BLOCK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`start` and `end` are places in the text that was scanned; `what` says in a few words what stands there."""

    category: Category
    severity: Severity
    start: int
    end: int
    what: str
