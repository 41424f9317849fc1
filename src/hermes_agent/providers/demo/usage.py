"""How many tokens a scripted exchange counts as: bytes / 4, and a prefix cache like the providers' own."""

from __future__ import annotations

import json
from collections import deque

from hermes_agent.core.model import Usage
from hermes_agent.core.section import estimate_tokens
from hermes_agent.providers.demo.script import Answer, Call, Piece, Think

CACHE_STEP = 128  # OpenAI's prompt cache hits grow in steps of 128 tokens
PROMPTS_KEPT = 32


class PrefixCache:
    """Remembers the latest prompts and says how much of a new one repeats the beginning of one of them."""

    def __init__(self, step: int = CACHE_STEP) -> None:
        self._prompts: deque[str] = deque(maxlen=PROMPTS_KEPT)
        self._step = step

    def shared(self, prompt: str) -> int:
        """Tokens of the longest beginning that an earlier prompt had too, in whole steps. The prompt is remembered."""
        longest = max((_common(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts.append(prompt)
        return estimate_tokens(prompt[:longest]) // self._step * self._step


def prompt_text(*parts: object) -> str:
    """The canonical text of a request: what is counted and cached, in the order in which a provider reads it."""
    return "\n".join(json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in parts)


def count(answer: Answer, prompt: str, cached: int) -> Usage:
    """The usage of one exchange, unless the answer brings its own."""
    if answer.usage is not None:
        return answer.usage
    reasoning = sum(estimate_tokens(piece.text) for piece in answer.pieces if isinstance(piece, Think))
    spoken = sum(estimate_tokens(_spoken(piece)) for piece in answer.pieces if not isinstance(piece, Think))
    whole = max(estimate_tokens(prompt), 1)
    return Usage(input=whole, output=reasoning + spoken, cached=min(cached, whole), reasoning=reasoning)


def _spoken(piece: Piece) -> str:
    return f"{piece.name}{piece.json}" if isinstance(piece, Call) else piece.text


def _common(one: str, other: str) -> int:
    """The length of the common beginning, by halving: comparing slices is much quicker than comparing characters."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
