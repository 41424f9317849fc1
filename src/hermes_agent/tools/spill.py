"""Results too large to answer with: the whole goes to a file, the model gets head, tail and the path."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hermes_agent.core.messages import Text
from hermes_agent.core.tool import Answer
from hermes_agent.tools.excerpt import Caps, fits, head_and_tail

# These keep within their own limits and are read on page by page.
PAGED = frozenset({"read_file"})


class Spill:
    """Shortens the answers of any tool to `caps`; `folder` (below HERMES_HOME/cache) keeps the whole ones, which
    `redact` takes secrets out of before they are written."""

    def __init__(self, folder: Path, caps: Caps | None = None, redact: Callable[[str], str] = str) -> None:
        self._folder = folder
        self._redact = redact
        self._caps = caps or Caps()

    async def fit(self, tool: str, answer: Answer, key: str) -> Answer:
        """The answer itself where it is small, otherwise one with each large text shortened. `key` is the call's."""
        if tool in PAGED or all(fits(part.text, self._caps) for part in answer.parts if isinstance(part, Text)):
            return answer
        parts = [
            await asyncio.to_thread(self._shorten, part, f"{key}-{index}") if isinstance(part, Text) else part
            for index, part in enumerate(answer.parts)
        ]
        return replace(answer, parts=tuple(parts))

    def _shorten(self, part: Text, key: str) -> Text:
        if fits(part.text, self._caps):
            return part
        text = self._redact(part.text)
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.txt"
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, errors="replace")
        size, lines = len(text.encode("utf-8", "replace")), text.count("\n") + 1
        note = f"[{size:,} bytes, {lines:,} lines; the middle is left out, the whole is in {path}]"
        return replace(part, text=head_and_tail(text, text, self._caps, left_out=note))
