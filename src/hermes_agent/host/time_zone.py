"""The machine's time zone by name, and the version of the data of all zones."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from pathlib import Path

from hermes_agent.host.late import libraries

LOCALTIME = Path("/etc/localtime")
FOLDER = "zoneinfo/"
UTC = "UTC"
VERSIONS = ("+VERSION", "tzdata.zi")
LONGEST = 40


def machine_zone(variables: Mapping[str, str], localtime: Path = LOCALTIME) -> str:
    """The name of this machine's time zone: TZ, otherwise what /etc/localtime links to, otherwise UTC."""
    for name in (variables.get("TZ", "").removeprefix(":"), _linked(localtime)):
        if name and name in zoneinfo.available_timezones():
            return name
    return UTC


def _linked(localtime: Path) -> str:
    try:
        return str(localtime.resolve()).rpartition(FOLDER)[2]
    except OSError:
        return ""


def tz_version() -> str:
    """The version of the data of time zones, or something else that changes with it."""
    files = [Path(folder) / name for folder in zoneinfo.TZPATH for name in VERSIONS]
    file = next((each for each in files if each.is_file()), None)
    if file is None:  # Then the library's data is used.
        return str(libraries.tzdata.IANA_VERSION)
    with file.open(encoding="utf-8", errors="replace") as lines:
        return lines.readline().strip()[-LONGEST:]
