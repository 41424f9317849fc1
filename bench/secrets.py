"""Secrets: made-up keys of well-known services that are hidden, honest files where something is, and the speed."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import quote

from bench.data import dataset
from bench.figures import Figure
from bench.secret_samples import CONTEXTS, samples, value_of
from hermes_agent.host.secret_rules import hide_keys, key_places

SEEDS, SAMPLED = 10, 2000
ROOT = Path(__file__).parents[1]
TEXTS = (".py", ".md", ".txt", ".json", ".js", ".toml", ".yaml", ".yml", ".cfg", ".rst", ".pyi", ".html", ".sh")
MADE_UP = ("secret", "signatures", "bad_context")
"""In the names of this repository's files that hold made-up keys on purpose."""


def measure() -> list[Figure]:
    """Shares in percent, of keys and of files."""
    return [*hits(), *false_alarms(), *speeds()]


def hits() -> Iterator[Figure]:
    """By where a key stands: how many are hidden."""
    found: Counter[str] = Counter()
    kinds = len(samples(0))
    for seed in range(SEEDS):
        for kind, sample in samples(seed).items():
            for context, put in CONTEXTS.items():
                shown = hide_keys(put(sample), lambda label, _: label, "[secret]")
                found[context] += not _is_seen(value_of(kind, sample), shown)
    for context, count in found.items():
        least = 80.0 if context == "wrapped" else 98.0
        share = 100 * count / (kinds * SEEDS)
        yield Figure(
            name=f"not hidden of {kinds * SEEDS} keys: {context}", value=100 - share, unit="%", limit=100 - least
        )


def _is_seen(value: str, shown: str) -> bool:
    flat = re.sub(r"\s|\x1b\[[0-9;]*m", "", shown)
    parts = (value, quote(value, safe=""), *([value[:12], value[-12:]] if len(value) >= 20 else []))
    return any(part in flat for part in parts)


def false_alarms() -> Iterator[Figure]:
    """Honest files in which something is hidden."""
    skills = dataset("skills")
    groups = {
        "this repository": [path.read_text(errors="replace") for path in _of_this_repository()],
        "installed packages": [path.read_text(errors="replace") for path in _installed()],
        "skills": _bodies(skills) if skills else [],
    }
    for name, texts in groups.items():
        if texts:
            wrong = sum(bool(key_places(text)) for text in texts)
            share = 100 * wrong / len(texts)
            yield Figure(name=f"false alarms on {len(texts)} files: {name}", value=share, unit="%", limit=0.5)


def _bodies(skills: Path) -> list[str]:
    rows = map(json.loads, (skills / "pool.jsonl").read_text().splitlines())
    return [row["body"] for row in rows if row["body"]]


def _of_this_repository() -> list[Path]:
    folders = ("src", "tests", "docs", "bench", ".ci")
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS)
    return [path for path in found if not any(part in path.name for part in MADE_UP)]


def _installed() -> list[Path]:
    files = (Path(str(file.locate())) for each in distributions() for file in each.files or () if file.suffix in TEXTS)
    found = sorted(path for path in files if path.is_file() and path.stat().st_size < 2_000_000)
    return random.Random(1).sample(found, min(SAMPLED, len(found)))


def speeds() -> Iterator[Figure]:
    """Seconds of this process for output without keys."""
    code = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    lines = (
        f"2026-01-01 12:00:{at % 60:02} INFO request {at} of {at * 7919:032x} took {at % 997} ms\n"
        for at in range(50_000)
    )
    for name, text in (("a log", "".join(lines)), ("code", code)):
        for size, unit in ((50_000, "50 kB"), (4_000_000, "4 MB")):
            part = text[:size]
            began = time.process_time()
            hide_keys(part, lambda label, _: label, "[secret]")
            speed = len(part) / (time.process_time() - began) / 1e6
            yield Figure(name=f"{name} without keys, {unit} at once", value=speed, unit="MB/s")
