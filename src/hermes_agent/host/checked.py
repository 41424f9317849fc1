"""What reading a settings file gives: plain values, where each stands, and what is wrong."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import PlainMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong; `line` counts from 1, 0 where the whole file is meant."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a text says. `values` holds only what is right, `lines` the line of each leaf in it."""

    values: PlainMap
    lines: dict[str, int]
    problems: tuple[Problem, ...]
