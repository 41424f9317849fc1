"""The scanner: what it finds of labelled attacks, and how often it is wrong about honest files."""

from __future__ import annotations

import importlib.metadata
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.data import dataset
from bench.figures import Figure
from hermes_agent.scanner.finding import Severity
from hermes_agent.scanner.scan import scan

README_NAMES = ("README.md", "AGENTS.md", "CLAUDE.md", "SKILL.md", "README.rst")
NODE = (Path("/usr/lib/node_modules"), Path("/usr/local/lib/node_modules"))


def measure() -> list[Figure]:
    """Shares in percent; false alarms count where something would be left out or refused."""
    texts = list(honest())
    began = time.perf_counter()
    alarms = sum(map(_is_told, texts))
    seconds = time.perf_counter() - began
    size = sum(map(len, texts)) / 1e6
    figures = [
        Figure(name=f"false alarms on {len(texts)} files", value=100 * alarms / len(texts), unit="%", limit=2.0),
        Figure(name="a megabyte of honest files", value=seconds / size, unit="s"),
    ]
    return [*figures, *labelled()]


def honest() -> Iterator[str]:
    """READMEs of the packages that are installed here, and bodies of public skills."""
    for package in importlib.metadata.distributions():
        if text := str(package.metadata.get_payload() or package.metadata.get("Description", "")):
            yield text
    for root in NODE:
        for name in README_NAMES:
            yield from (path.read_text(errors="replace") for path in root.rglob(name))
    if skills := dataset("skills"):
        rows = (json.loads(line) for line in (skills / "pool.jsonl").read_text().splitlines())
        yield from (row["body"] for row in rows if row["body"])


def labelled() -> list[Figure]:
    """By source of the labelled texts: recall on attacks, false alarms on honest ones."""
    folder = dataset("injection")
    if folder is None:
        return []
    rows = [json.loads(line) for line in (folder / "labelled.jsonl").read_text().splitlines()]
    groups = Counter((row["source"], row["label"], row["category"]) for row in rows)
    found = Counter((row["source"], row["label"], row["category"]) for row in rows if _is_told(row["text"]))
    return [
        Figure(
            name=f"found of {count} {label}: {source}, {category}",
            value=100 * found[source, label, category] / count,
            unit="%",
            limit=2.0 if label == "benign" else None,
        )
        for (source, label, category), count in sorted(groups.items())
    ]


def _is_told(text: str) -> bool:
    return any(finding.severity >= Severity.WARN for finding in scan(text))
