"""The settings of learning."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import about

Mode = Literal["auto", "propose", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSettings:
    """What is learned from conversations (section `learning`)."""

    mode: Mode = field(
        default="auto",
        metadata={
            "doc": "auto keeps what a review learns, versioned and undoable; propose waits for your yes; off reviews "
            "nothing."
        },
    )
    raw_pass: bool = field(
        default=True,
        metadata={
            "doc": "Whether a review may also look at what web pages, files and tools said; what comes of that is "
            "quarantined."
        },
    )
    max_turns: int = field(default=16, metadata=about("Model calls of one pass of a review.", least=1, most=64))
    max_tokens: int | None = field(
        default=2_000_000, metadata=about("Tokens of one review, in and out; empty means no limit.", least=1000)
    )
    max_money: float | None = field(
        default=None, metadata=about("US dollars of one review; empty means no limit.", least=0)
    )
    max_seconds: float = field(default=600.0, metadata=about("Seconds of one review.", least=1))
    constraint_days: int = field(
        default=90,
        metadata=about("Days that a lesson of what does not work may hold at most.", least=1, most=3650),
    )
    max_constraints: int = field(
        default=20,
        metadata=about(
            "Lessons of what does not work, and rules of yours of what not to do, that hold at once at most, each.",
            least=1,
            most=1000,
        ),
    )
    probe_hours: float = field(
        default=24.0, metadata=about("Hours after which what does not work is checked again.", least=0, most=8760)
    )
    waits_days: int = field(
        default=30, metadata=about("Days after which what waits, or is in quarantine, expires.", least=1, most=3650)
    )
