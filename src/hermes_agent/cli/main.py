"""Where `hermes` begins; the version is answered before anything else is loaded."""

from __future__ import annotations

import sys

from hermes_agent.host.late import late
from hermes_agent.version import VERSION


def main() -> int:
    """Run the command line of this process and return its exit code (`cli/exits.py`)."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"hermes {VERSION}\n")
        return 0
    code: int = late("hermes_agent.cli.start:start")(arguments)
    return code
