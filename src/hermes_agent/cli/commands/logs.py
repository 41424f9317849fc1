"""Subcommand `hermes logs`: show and follow the program's log."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import click

from hermes_agent.cli.output import announce
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import Since
from hermes_agent.core.dataclass import dataclass

LEVELS = ("debug", "info", "warning", "error", "critical")
GLANCE = 0.25
"""Seconds between two looks into a log that is followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFilter:
    """Which log lines `hermes logs` and `hermes gateway logs` show: from `since` on, of at least `level`, whose
    session and run ids begin with `session` and `run`; only those of gateway processes unless `everybody`."""

    since: float = 0.0
    level: str = "info"
    everybody: bool = False
    session: str = ""
    run: str = ""


class Reader:
    """Parses and filters lines of the program's log. It learns from the lines which processes are gateways."""

    def __init__(self, wanted: LineFilter) -> None:
        self._wanted = wanted
        self._gateways: set[object] = set()

    def parsed(self, raw: str) -> dict[str, Any] | None:
        """Parse a line; None if it is filtered out or invalid."""
        try:
            line = json.loads(raw)
            level, process = LEVELS.index(line["level"]), line.get("process")
            at = datetime.fromisoformat(line["time"])
        except (ValueError, KeyError, TypeError):
            return None
        if str(line.get("part", "")).startswith("gateway."):
            self._gateways.add(process)
        if not self._wanted.everybody and process not in self._gateways:
            return None
        if not all(str(line.get(key, "")).startswith(getattr(self._wanted, key)) for key in ("session", "run")):
            return None
        if level < LEVELS.index(self._wanted.level) or at.timestamp() < self._wanted.since:
            return None
        return dict(line)


def shown(line: dict[str, Any]) -> str:
    """Format a line for people."""
    at = datetime.fromisoformat(line["time"]).astimezone()
    session = f" [{line['session']}]" if line.get("session") else ""
    error = "\n".join(f"    {each}" for each in str(line.get("error", "")).splitlines())
    text = f"{at:%Y-%m-%d %H:%M:%S} {line['level']:<7} {line.get('part', '')}{session}: {line.get('text', '')}"
    return f"{text}\n{error}" if error else text


def line_as_json(line: dict[str, Any]) -> str:
    """Format a line as JSON."""
    return json.dumps(line, ensure_ascii=False)


def older(log: Path) -> list[Path]:
    """Rotated log files, oldest first."""
    return sorted(log.parent.glob(f"{log.name}.[0-9]*"), key=lambda path: -int(path.suffix[1:]))


def lines(log: Path, reader: Reader, over: Callable[[], bool] = lambda: False) -> Iterator[dict[str, Any] | None]:
    """Existing log lines, then None, then new lines until `over`; follows rotation."""
    caught_up = False
    for text in texts(log, over):
        if text:
            yield from filter(None, [reader.parsed(text)])
        elif not caught_up:
            caught_up = True
            yield None


def texts(log: Path, over: Callable[[], bool]) -> Iterator[str]:
    """Raw lines of the rotated and current log, and an empty string whenever there are no more."""
    for path in older(log):
        with path.open(errors="replace") as file:
            yield from file
    while True:
        if log.exists():
            with log.open(errors="replace") as file:
                yield from following(file, log, over)
        else:
            yield ""
            time.sleep(GLANCE)
        if over():
            return


def following(file: TextIO, log: Path, over: Callable[[], bool]) -> Iterator[str]:
    """Whole lines of an open log, and an empty string whenever there are no more, until the log is rotated."""
    rest = ""
    while True:
        if text := file.readline():
            rest += text
            if rest.endswith("\n"):
                yield rest
                rest = ""
            continue
        yield ""
        if over() or not is_still(file, log):
            return
        time.sleep(GLANCE)


def is_still(file: TextIO, log: Path) -> bool:
    """Whether the open file is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), log.stat())
    except FileNotFoundError:
        return False


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the click options for filtering and formatting log lines."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="A JSON object per line."),
        click.option("-n", "--lines", "count", default=200, type=click.IntRange(min=0), help="Number of lines (200)."),
        click.option("--run", default="", metavar="ID", help="Only this run."),
        click.option("--session", default="", metavar="ID", help="Only this session."),
        click.option("--level", type=click.Choice(LEVELS), default="info", help="Lowest level to show."),
        click.option(
            "--since",
            default=0.0,
            type=Since(),
            metavar="WHEN",
            help="From then on: 30s, 10m, 2h, 3d, or a date and time.",
        ),
        click.option("-f", "--follow", is_flag=True, help="Follow new lines until Ctrl-C."),
    ):
        command = option(command)
    return command


def show_log(log: Path, *, follow: bool, as_json: bool, count: int, **wanted: Any) -> None:  # noqa: ANN401  the fields of `LineFilter`
    """Print the last matching lines, and new ones if followed."""
    reader = Reader(LineFilter(**wanted))
    text_of = line_as_json if as_json else shown
    recent: deque[dict[str, Any]] | None = deque(maxlen=count)
    for line in lines(log, reader):
        if line is None:
            found = "\n".join(map(text_of, recent or ()))
            if found or not as_json:
                announce(found or "Nothing yet.")
            recent = None
            if not follow:
                return
        elif recent is None:
            announce(text_of(line))
        else:
            recent.append(line)


@click.command()
@log_options
@pass_surface
def logs(surface: Surface, /, **wanted: Any) -> None:  # noqa: ANN401  click hands each option by its name
    """Show what the program did, line by line.

    Calls of tools, requests to models, approvals, reviews, deliveries. Each line has its session and run. What was
    said, and what tools answered, is in the session itself.
    """
    show_log(surface.home.log_file, everybody=True, **wanted)
