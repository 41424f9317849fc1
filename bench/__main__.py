"""`python -m bench [--data FOLDER] [NAME ...]`: measure and print the table; exit code 1 where a limit is not held."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

from bench import data
from bench.figures import Figure, table

MODULES = (
    "start",
    "turn",
    "runs",
    "lanes",
    "log",
    "chunks",
    "first_token",
    "places",
    "kills",
    "scanner",
    "replay",
    "recall",
    "prefix",
    "skills",
    "api",
)


def main(names: list[str]) -> int:
    """Measure these modules, or all."""
    if "--data" in names:
        place = names.index("--data")
        data.use(Path(names[place + 1]))
        names = names[:place] + names[place + 2 :]
    figures: list[Figure] = []
    for name in names or MODULES:
        began = time.monotonic()
        figures += importlib.import_module(f"bench.{name}").measure()
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(table(figures))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
