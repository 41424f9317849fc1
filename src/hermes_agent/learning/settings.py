"""Settings of learning and of the curator."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting

Mode = Literal["auto", "propose", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSettings:
    """Settings of learning from conversations (section `learning`)."""

    mode: Mode = setting(
        "auto",
        "auto keeps what a review learns, versioned and undoable; propose asks for your approval; off reviews nothing.",
    )
    raw_pass: bool = setting(
        True,
        "Whether a review may also read web pages, files and results of tools; lessons from them are quarantined.",
    )
    max_turns: int = setting(16, "Model calls of one pass of a review.", least=1, most=64)
    max_tokens: int | None = setting(2_000_000, "Tokens of one review, in and out; empty means no limit.", least=1000)
    max_money: float | None = setting(None, "US dollars of one review; empty means no limit.", least=0)
    max_seconds: float = setting(600.0, "Seconds of one review.", least=1)
    constraint_days: int = setting(90, "Most days that a lesson about a failure may hold.", least=1, most=3650)
    max_constraints: int = setting(
        20,
        "Most lessons about failures, and most prohibitions, per person at a time.",
        least=1,
        most=1000,
    )
    probe_hours: float = setting(
        24.0, "Hours after which a lesson about a failure is checked again.", least=0, most=8760
    )
    waits_days: int = setting(30, "Days after which proposals and quarantined lessons expire.", least=1, most=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorSettings:
    """Settings of the curator, which maintains skills that the agent made (section `curator`)."""

    enabled: bool = setting(True, "Whether the curator runs now and then.")
    interval_hours: float = setting(168.0, "Hours from one pass to the next.", least=1)
    min_idle_hours: float = setting(2.0, "Hours without any conversation after which a pass may start.", least=0)
    stale_after_days: int = setting(30, "Days unused after which a skill is stale.", least=1)
    archive_after_days: int = setting(90, "Days unused after which a skill is archived.", least=1)
    consolidate: bool = setting(True, "Whether a model grades, repairs and merges skills; false: only age counts.")
    keep: int = setting(
        5, "Does nothing any more: `rollback` reads the ledger of versions, which keeps all of them.", least=1, most=100
    )
    max_turns: int = setting(40, "Model calls of one pass.", least=1, most=200)
    max_tokens: int | None = setting(2_000_000, "Tokens of one pass, in and out; empty means no limit.", least=1000)
    max_money: float | None = setting(None, "US dollars of one pass; empty means no limit.", least=0)
    max_seconds: float = setting(1200.0, "Seconds of the model's part of a pass.", least=1)
