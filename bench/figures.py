"""A measured figure, its floor, its limit, and the table of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `value` and `floor` are in `unit`; `limit` is what the ratio (or, without a floor, the
    value) may be at most; None where there is none."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """Value by floor."""
        return None if not self.floor else self.value / self.floor

    @property
    def holds(self) -> bool:
        """Whether it is within its limit."""
        measured = self.value if self.ratio is None else self.ratio
        return self.limit is None or measured <= self.limit


def median(sample: Callable[[], float], times: int) -> float:
    """The median of so many samples."""
    return statistics.median(sample() for _ in range(times))


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned text."""
    rows = [("figure", "measured", "floor", "ratio", "limit", "")]
    for figure in figures:
        ratio = figure.ratio
        rows.append(
            (
                figure.name,
                f"{figure.value:,.3f} {figure.unit}",
                "" if figure.floor is None else f"{figure.floor:,.3f} {figure.unit}",
                "" if ratio is None else f"{ratio:.2f} x",
                "" if figure.limit is None else (f"{figure.limit:g} x" if ratio is not None else f"{figure.limit:g}"),
                "ok" if figure.holds else "OVER",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
