"""`python -m bench [NAME ...]`: measure and print the table; the exit code is 1 where a figure is over its limit."""

from __future__ import annotations

import importlib
import sys
import time

from bench.figures import Figure, table

MODULES = ("start", "turn", "runs", "lanes", "log", "chunks", "kills", "replay")


def main(names: list[str]) -> int:
    """Measure these modules, or all."""
    figures: list[Figure] = []
    for name in names or MODULES:
        began = time.monotonic()
        figures += importlib.import_module(f"bench.{name}").measure()
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(table(figures))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
