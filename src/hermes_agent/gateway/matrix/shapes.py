"""What stands in JSON that anybody may have written: each of these gives an empty value where anything else stands."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]
HALVES = re.compile("[\ud800-\udfff]")


def table(value: object) -> Event:
    """An object."""
    return value if isinstance(value, dict) else {}


def inside(value: object, *names: str) -> Event:
    """The object that is found by these names, one in the other."""
    for name in names:
        value = table(value).get(name)
    return table(value)


def tables(value: object) -> list[Event]:
    """The objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """A text, half signs (which no UTF-8 has) as the sign for what cannot be read."""
    return HALVES.sub("\ufffd", value) if isinstance(value, str) else ""


def number(value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        return float(value) if math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0


def count(value: object) -> int:
    """A whole number that is not negative."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
