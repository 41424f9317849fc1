"""Entry point of `hermes`. It answers `--version` before it imports the rest of the program."""

from __future__ import annotations

import gc
import sys

from hermes_agent.host.late import late
from hermes_agent.version import VERSION

QUIET = 150_000
"""New objects between two looks for garbage. Imports make many that stay; looking at them again and again takes 7 % of
the start."""


def main() -> int:
    """Run the command line of this process and return its exit code (`cli/exits.py`)."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"hermes {VERSION}\n")
        return 0
    gc.set_threshold(QUIET, 20, 20)
    code: int = late("hermes_agent.cli.start:start")(arguments)
    return code
