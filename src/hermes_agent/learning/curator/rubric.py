"""What a good skill has, and the grade that follows from the points: the sum is made here, by nobody's word."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from hermes_agent.core.errors import BadArguments

CRITERIA: Mapping[str, str] = MappingProxyType(
    {
        "trigger": "the description says what it does and when to use it, in the words that a person would use",
        "steps": "the steps stand in their order and can be followed without guessing",
        "pitfalls": "it says what goes wrong, and what to do instead",
        "check": "it says how to see that the work is done right",
        "scope": "it is about a class of tasks, not about one occasion, one person's file or one day",
        "brief": "nothing in it that does not help, nothing twice",
    }
)
MOST = 2
"""Points of a criterion: 0 missing, 1 partly, 2 good."""
GRADES = ((10, "A"), (7, "B"), (4, "C"), (0, "D"))
NAMED = re.compile(r"(?<![\w./-])(?:references|templates|scripts|assets)/[\w.-]+(?:/[\w.-]+)*")


def checked(points: Mapping[str, int]) -> dict[str, int]:
    """The points, where there is a number for each criterion. Raises `BadArguments`."""
    if set(points) != set(CRITERIA) or not all(0 <= each <= MOST for each in points.values()):
        raise BadArguments(f"Each of {', '.join(CRITERIA)} needs 0, 1 or 2 points, and nothing else.")
    return {name: points[name] for name in CRITERIA}


def grade(points: Mapping[str, int]) -> str:
    """A to D."""
    total = sum(points.values())
    return next(letter for least, letter in GRADES if total >= least)


def missing_files(body: str, files: Collection[str]) -> list[str]:
    """The support files that a skill names and does not have."""
    return sorted({match.rstrip(".") for match in NAMED.findall(body)} - set(files))
