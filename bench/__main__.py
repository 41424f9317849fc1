"""`python -m bench [--data FOLDER] [NAME ...]`: measure and print the table; exit code 1 where a limit is not held."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from bench import data
from bench.figures import Figure, table

MODULES = (
    "shape",
    "walk",
    "start",
    "turn",
    "runs",
    "lanes",
    "log",
    "reads",
    "chunks",
    "first_token",
    "places",
    "kills",
    "scanner",
    "secrets",
    "replay",
    "chaos",
    "recall",
    "prefix",
    "skills",
    "api",
    "gateway",
    "work",
)


def main(arguments: list[str]) -> int:
    """Measure what is named, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure, each figure beside a floor.")
    parser.add_argument("names", nargs="*", choices=[*MODULES, []], metavar="NAME", help=f"of {', '.join(MODULES)}")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="public texts to measure on; else left out by name")
    asked = parser.parse_args(arguments)
    if asked.data is not None:
        data.use(asked.data)
    figures: list[Figure] = []
    for name in asked.names or MODULES:
        began = time.monotonic()
        figures += importlib.import_module(f"bench.{name}").measure()
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(table(figures))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
