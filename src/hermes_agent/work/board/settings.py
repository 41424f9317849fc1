"""Settings of the board."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import section, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """One check of finished cards (section `board.checks.NAME`)."""

    command: str = setting("", "The command; exit code 0 accepts the card. It runs in the card's workspace.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSettings:
    """Settings of the board (section `board`), read in the home that has no profile."""

    dispatch: bool = setting(True, "Whether the gateway and `hermes worker` start processes for ready cards.")
    assignee: str = setting("", "Profile of cards that name none; empty: the home without a profile.")
    max_running: int = setting(4, "Most processes of cards at a time on one machine.", least=1, most=256)
    max_per_profile: int = setting(0, "Most of them of one profile; 0: any number.", least=0, most=256)
    max_attempts: int = setting(2, "Failed runs after which a card is blocked.", least=1, most=20)
    stale_minutes: float = setting(60.0, "Minutes without progress after which the watchers are told.", least=1)
    auto_decompose: bool = setting(False, "Whether an agent divides cards in triage into smaller ones.")
    max_tokens: int | None = setting(2_000_000, "Tokens of such a division, in and out; empty: no limit.", least=1000)
    check_seconds: float = setting(900.0, "Seconds that a check may take.", least=1, most=86_400)
    keep_days: float = setting(7.0, "Days after which the workspace of an archived card is removed.", least=0)
    checks: Mapping[str, CheckSettings] = section(dict, "Checks of finished cards, by name: `--check NAME`.")
