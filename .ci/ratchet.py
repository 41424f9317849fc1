"""Coverage only rises: each file reaches what it once reached, and core, agent and store reach everything.

`.ci/ratchet.py` judges what `coverage run` measured; `--raise` writes what was reached into `.ci/coverage.json`. The
figures are whole per cents of lines and branches together.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

FLOORS = Path(__file__).with_name("coverage.json")
REPORT = Path(".coverage_report.json")
WHOLE = ("src/hermes_agent/core/", "src/hermes_agent/agent/", "src/hermes_agent/store/")
SURE = "src/hermes_agent/core/"
NEW_FILE = 85
SLACK = 4
"""Per cents that a run may miss outside core: which side of a race between threads or processes is met is chance. In a
short file a line is more than that: there it is `SLACK_LINES`."""
SLACK_LINES = 3


class Summary(TypedDict):
    percent_covered: float
    num_statements: int


class Figures(TypedDict):
    """What coverage's own report says of one file."""

    summary: Summary
    missing_lines: list[int]
    missing_branches: list[list[int]]


def floor_of(file: str, floors: Mapping[str, int], lines: int) -> int:
    if file.startswith(SURE):
        return 100
    slack = max(SLACK, 100 * SLACK_LINES // max(lines, 2 * SLACK_LINES))
    return (100 if file.startswith(WHOLE) else floors.get(file, NEW_FILE)) - slack


def shortfalls(reached: Mapping[str, int], floors: Mapping[str, int], lines: Mapping[str, int]) -> list[str]:
    least = {file: floor_of(file, floors, lines[file]) for file in reached}
    return [
        f"{file}: {per_cent} % covered, of at least {least[file]} %"
        for file, per_cent in sorted(reached.items())
        if per_cent < least[file]
    ]


def raised(reached: Mapping[str, int], floors: Mapping[str, int]) -> dict[str, int]:
    """The floors after a full run: none lower than before, none for a file that is gone or that must be whole."""
    return {file: max(reached[file], floors.get(file, 0)) for file in sorted(reached) if not file.startswith(WHOLE)}


def not_reached(figures: Figures) -> str:
    """Lines as ranges, then the jumps between lines that were reached: `3-5, 9, 12->14`."""
    ranges: list[list[int]] = []
    for line in figures["missing_lines"]:
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    lines = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges]
    branches = (branch for branch in figures["missing_branches"] if branch[0] not in figures["missing_lines"])
    return ", ".join([*lines, *(f"{start}->{end}" for start, end in branches if end not in figures["missing_lines"])])


def measure() -> dict[str, Figures]:
    """The figures of every process together; nothing is left to combine where that was done before."""
    if any(Path().glob(".coverage.*")):
        subprocess.run([sys.executable, "-I", "-m", "coverage", "combine", "--quiet"], check=True)
    subprocess.run([sys.executable, "-I", "-m", "coverage", "json", "--quiet"], check=True)
    files: dict[str, Figures] = json.loads(REPORT.read_text())["files"]
    return files


def main() -> int:
    floors = json.loads(FLOORS.read_text())
    files = measure()
    reached = {file: int(figures["summary"]["percent_covered"]) for file, figures in files.items()}
    if "--raise" in sys.argv:
        FLOORS.write_text(json.dumps(raised(reached, floors), indent=1) + "\n")
        return 0
    lines = {file: figures["summary"]["num_statements"] for file, figures in files.items()}
    found = shortfalls(reached, floors, lines)
    for line in found:
        print(f"{line}; not reached: {not_reached(files[line.partition(':')[0]])}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
