"""Finds tools by words: BM25 over names, descriptions and parameter names."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from hermes_agent.core.tool import Tool

NAME_WEIGHT = 3
K1, B = 1.2, 0.75  # the usual constants of BM25 (Robertson & Zaragoza 2009)
_STOP = frozenset(
    re.findall(r"\w+", "a an and any as at by can for from i in into is it me my of on or the to what with you")
)
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ers", "ed", "er", "es", "s", "e", "y")
_SHORTEST_STEM = 3


def ranked(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """The tools that share a word with the query, the best first; equals stay in their order."""
    wanted = set(_stems(query))
    pages = [_page(tool) for tool in tools]
    average = sum(page.total() for page in pages) / max(1, len(pages))
    spread = Counter(stem for page in pages for stem in page)
    scores = [_score(wanted, page, average=average, spread=spread, count=len(pages)) for page in pages]
    order = sorted(range(len(tools)), key=lambda index: -scores[index])
    return [tools[index] for index in order if scores[index] > 0]


def _score(wanted: set[str], page: Counter[str], *, average: float, spread: Counter[str], count: int) -> float:
    total = 0.0
    for stem in wanted & page.keys():
        rarity = math.log(1 + (count - spread[stem] + 0.5) / (spread[stem] + 0.5))
        often = page[stem]
        total += rarity * often * (K1 + 1) / (often + K1 * (1 - B + B * page.total() / average))
    return total


def _page(tool: Tool) -> Counter[str]:
    schema = tool.schema
    page = Counter(_stems(schema.description))
    for stem in _stems(schema.name):
        page[stem] += NAME_WEIGHT
    page.update(stem for name in schema.parameters.get("properties", {}) for stem in _stems(name))
    return page


def _stems(text: str) -> list[str]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return [_stem(word) for word in re.findall(r"[^\W_]+", spaced.lower()) if word not in _STOP]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word
