"""Secrets: made-up keys of well-known services that are hidden, honest files where something is, and the speed."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import distributions
from itertools import product
from pathlib import Path
from urllib.parse import quote

from bench.data import dataset
from bench.figures import Figure
from bench.secret_samples import CONTEXTS, samples, value_of
from hermes_agent.host.secret_rules import hide_keys, key_places, rules
from hermes_agent.host.secrets import Redaction

SEEDS, SAMPLED = 10, 2000
ROOT = Path(__file__).parents[1]
TEXTS = (".py", ".md", ".txt", ".json", ".js", ".toml", ".yaml", ".yml", ".cfg", ".rst", ".pyi", ".html", ".sh")
MADE_UP = ("secret", "signatures", "bad_context")
"""In the names of this repository's files that hold made-up keys on purpose."""


def measure() -> list[Figure]:
    """Shares in percent, of keys and of files."""
    return [*hits(), *false_alarms(), *speeds()]


def hits() -> Iterator[Figure]:
    """By where a key stands, and by its kind: how many are not hidden."""
    kinds = samples(0).keys()
    made = [(kind, sample) for seed in range(SEEDS) for kind, sample in samples(seed).items()]
    missed: Counter[str] = Counter()
    for (kind, sample), (context, put) in product(made, CONTEXTS.items()):
        if _is_seen(value_of(kind, sample), _keys_hidden(put(sample))):
            missed.update((context, kind))
    for names, count in ((CONTEXTS, len(kinds) * SEEDS), (kinds, len(CONTEXTS) * SEEDS)):
        for name in names:
            least = 1 if name in CONTEXTS and "wrapped" not in name else 8
            yield Figure(name=f"not hidden of {count}: {name}", value=100 * missed[name] / count, unit="%", limit=least)


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
    """Milliseconds of this process for a megabyte without keys, beside one search for what the rules look for."""
    words = re.compile("|".join(re.escape(key) for rule in rules() for key in rule.keys))
    known = Redaction(dict.fromkeys(list(samples(1).values())[:5], "NAME"))
    for name, text in _honest():
        for size in (50_000, 1_000_000):
            part, times = text[:size], max(3, 500_000 // size)
            floor = _fastest(lambda part=part: list(words.finditer(part)), times)
            for what, look in (("keys", _keys_hidden), ("known values", known.hide)):
                took = _fastest(lambda part=part, look=look: look(part), times)
                yield Figure(
                    name=f"{what} in {size // 1000} kB of {name}: {len(part) / took / 1e6:.0f} MB/s",
                    value=took * 1e9 / len(part),
                    floor=floor * 1e9 / len(part),
                    unit="ms/MB",
                    limit=0.8,
                )


def _honest() -> Iterator[tuple[str, str]]:
    ids = (f"request {at} of {at * 7919:032x} took {at % 997} ms" for at in range(14_000))
    yield "a log", "".join(f"2026-01-01 12:00:{at % 60:02} INFO {each}\n" for at, each in enumerate(ids))
    yield "code", "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    yield "prose", "".join(path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))) * 2


def _keys_hidden(text: str) -> str:
    return hide_keys(text, lambda label, _: label, "[secret]")


def _fastest(work: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of so many."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)
