"""What a child process needs so that its lines are counted too."""

import os


def measured() -> dict[str, str]:
    """The variables that say to a child that coverage is being measured; none where it is not."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
