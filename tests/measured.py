"""What a child process needs so that its lines are counted too."""

import os
from pathlib import Path

NARROW = Path(__file__).parent / "narrow"


def measured() -> dict[str, str]:
    """The variables that say to a child that coverage is being measured, and what is scarce; none where nothing is."""
    return {name: value for name, value in os.environ.items() if name.startswith(("COVERAGE_", "TESTED_"))}


def path_of(*folders: Path) -> str:
    """The `PYTHONPATH` of a child, for which is scarce what is scarce here."""
    scarce = [NARROW] if any(name.startswith("TESTED_") for name in os.environ) else []
    return os.pathsep.join(map(str, (*scarce, *folders)))
