"""What a command's output is watched for: patterns, looked for line by line in what is new."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes_agent.core.errors import BadArguments
from hermes_agent.sandbox.place import Running
from hermes_agent.tools.excerpt import cleaned

MOST_PATTERNS, LONGEST_PATTERN = 10, 300
LONGEST_LINE = 1000  # characters of a line that are looked at
CHUNK = 256 << 10
LINE_END = re.compile(r"[\r\n]+")
# A repeated group that repeats something itself may take longer than anybody lives.
_NESTED = re.compile(r"\((?:[^()\\]|\\.)*[+*}](?:[^()\\]|\\.)*\)[+*{]")


def check_patterns(patterns: Sequence[str]) -> None:
    """Raise `BadArguments` where one is no regular expression, or one that could take forever."""
    if len(patterns) > MOST_PATTERNS:
        raise BadArguments(f"At most {MOST_PATTERNS} patterns can be watched for.")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadArguments(f"`{pattern}` is no regular expression: {error}.") from error
        if len(pattern) > LONGEST_PATTERN or _NESTED.search(pattern):
            raise BadArguments(f"`{pattern[:80]}` may take too long.", hint="Watch for a few plain words.")


class Lookout:
    """Reads on where it stopped. A line that is not whole yet counts too, and is looked at again when it has grown."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._read = 0
        self._line = b""  # the beginning of the line that is not whole yet; empty where it was told of

    async def next_line(self, running: Running) -> str:
        """The next line that matches, empty where there is none so far."""
        while new := await running.read(self._read, CHUNK):
            found = self._find(new)
            if found:
                return found
        return ""

    def _find(self, new: bytes) -> str:
        before = len(self._line)
        text = self._line + new
        start = 0
        while (end := text.find(b"\n", start)) >= 0:
            line = self._match(text[start:end])
            start = end + 1
            if line:
                self._read += start - before
                self._line = b""
                return line
        line = self._match(text[start:])
        self._line = b"" if line else text[start:][-4 * LONGEST_LINE :]
        self._read += len(new)
        return line

    def _match(self, raw: bytes) -> str:
        line = cleaned(raw.decode("utf-8", "replace"))[:LONGEST_LINE]
        return line.strip() if any(pattern.search(line) for pattern in self._patterns) else ""
