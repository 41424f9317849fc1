"""The script `supervisor.sh`, and the words of a shell that run it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from shlex import quote

FILE = Path(__file__).with_name("supervisor.sh")


@cache
def supervisor() -> str:
    """The script without its comments: it is sent with every call."""
    lines = FILE.read_text().splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def words(arguments: Sequence[str]) -> list[str]:
    """What a machine runs that takes words."""
    return ["sh", "-c", supervisor(), "supervisor", *arguments]


def line(arguments: Sequence[str]) -> str:
    """The same for a machine that takes a line of shell."""
    return " ".join(map(quote, words(arguments)))
