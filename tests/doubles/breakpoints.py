"""The prompt cache of a service whose requests mark what to cache: exact prefixes that end at a marked block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from hermes_agent.core.section import estimate_tokens

LOOK_BACK = 20  # blocks before a breakpoint that the service tries for an earlier cache entry


class BreakpointCache:
    """Remembers the prefixes that requests marked."""

    def __init__(self) -> None:
        self._written: set[str] = set()

    def account(self, model: str, blocks: Iterable[tuple[Mapping[str, Any], bool]]) -> tuple[int, int]:
        """Tokens read from the cache and tokens written to it by a request with these blocks, each with whether it is
        marked."""
        digest, tokens = hashlib.sha256(model.encode()), 0
        ends: list[tuple[str, int]] = []
        marks: list[int] = []
        for place, (block, marked) in enumerate(blocks):
            text = json.dumps(block)
            digest.update(text.encode())
            tokens += estimate_tokens(text)
            ends.append((digest.hexdigest(), tokens))
            if marked:
                marks.append(place)
        read = max((self._found(ends, mark) for mark in marks), default=0)
        self._written.update(ends[mark][0] for mark in marks)
        last = ends[marks[-1]][1] if marks else 0
        return read, max(0, last - read)

    def _found(self, ends: list[tuple[str, int]], mark: int) -> int:
        for key, tokens in reversed(ends[max(0, mark - LOOK_BACK) : mark + 1]):
            if key in self._written:
                return tokens
        return 0
