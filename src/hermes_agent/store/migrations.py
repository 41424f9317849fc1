"""Schema migrations: numbered files `sql/<dialect>/NNNN_name.sql`."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A schema migration: its number and its statements."""

    number: int
    sql: str


def newest(folder: Path) -> int:
    """The number of the last migration in `folder`."""
    return max(int(path.name[:4]) for path in folder.iterdir() if path.suffix == ".sql")


def steps_after(folder: Path, number: int) -> list[Step]:
    """The migrations of `folder` that follow `number`, in order."""
    files = sorted(path for path in folder.iterdir() if path.suffix == ".sql" and int(path.name[:4]) > number)
    return [Step(number=int(path.name[:4]), sql=path.read_text(encoding="utf-8")) for path in files]
