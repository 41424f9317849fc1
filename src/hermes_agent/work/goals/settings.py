"""Settings of goals."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSettings:
    """Settings of goals (section `goals`)."""

    max_turns: int = setting(20, "Turns that a goal may take by itself.", least=1, most=1000)
    money: float | None = setting(None, "US dollars of one goal; empty means no limit of its own.", least=0)
    tokens: int | None = setting(None, "Tokens of one goal, in and out; empty means no limit of its own.", least=0)
    stalls: int = setting(3, "Checks in a row that find the same state, after which a goal stops.", least=2, most=20)
    fails: int = setting(3, "Failed runs in a row after which a goal stops.", least=1, most=20)
    judge: Literal["auto", "never"] = setting(
        "auto", "Whether a model judges criteria in words; never: a goal needs a command, a file or a card."
    )
    command_seconds: float = setting(600.0, "Seconds that one command of a goal may take.", least=1, most=86_400)
    mirror: bool = setting(True, "Whether each goal is shown as a file, `goals/ID.md` in the home.")
