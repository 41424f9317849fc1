"""Skills: what ten thousand of them cost in the prompt, and how well and fast the one that fits is found."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import skills_ref.validator

from bench.data import dataset
from bench.figures import Figure
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.section import estimate_tokens
from hermes_agent.skills.depot import StateFile
from hermes_agent.skills.format import problems
from hermes_agent.skills.library import Library, index_text
from hermes_agent.skills.skill import Occasion, Places
from hermes_agent.store.skills_index import Indexed, SkillsIndex

FAMILIES = 80
ROUNDS = 5
WITHIN = 5


def measure() -> list[Figure]:
    """The prompt on made-up skills in files; finding on the public set, where it is here."""
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(in_the_prompt(Path(folder)))
        if (data := dataset("skills")) is not None:
            figures += [*asyncio.run(finding(Path(folder), data)), agreement(data)]
    return figures


async def in_the_prompt(folder: Path) -> list[Figure]:
    """Tokens of the section, with 1,000 and with 10,000 skills as files."""
    sizes = []
    for many in (1_000, 10_000):
        root = folder / str(many)
        for number in range(many):
            place = root / f"family-{number % FAMILIES:02}" / f"skill-{number:05}"
            place.mkdir(parents=True)
            about = f"Does thing {number} for case {number % 97}."
            text = f"---\nname: skill-{number:05}\ndescription: {about}\n---\n\nDo it.\n"
            (place / "SKILL.md").write_text(text)
        library = Library(
            index=SkillsIndex(folder / f"{many}.db"),
            places=Places(home=root),
            state=StateFile(root),
            clock=SystemClock(),
        )
        began = time.perf_counter()
        await library.refresh(patience=None)
        first = time.perf_counter() - began
        began = time.perf_counter()
        await library.forget()
        again = time.perf_counter() - began
        sizes.append(estimate_tokens(await index_text(library, "", Occasion())))
        await library.close()
    return [
        Figure(name="prefix with 10,000 skills, tokens", value=sizes[1], unit="tokens", limit=1_000),
        Figure(name="the same against 1,000", value=sizes[1] - sizes[0], unit="tokens", limit=0),
        Figure(name="10,000 skills read for the first time", value=first, unit="s"),
        Figure(name="10,000 skills looked at again", value=again, unit="s"),
    ]


async def finding(folder: Path, data: Path) -> list[Figure]:
    """Tasks and the skills that belong to them, among all others; a figure of misses, so that less is better."""
    index = SkillsIndex(folder / "found.db")
    await index.update(list({skill.name: skill for skill in reversed(list(pool(data)))}.values()))
    tasks = [json.loads(line) for line in (data / "queries.jsonl").read_text().splitlines()]
    missed, seconds = 0, []
    for number in range(ROUNDS * len(tasks)):
        task = tasks[number % len(tasks)]
        began = time.perf_counter()
        found = await index.search(task["query"], ["/"], WITHIN)
        seconds.append(time.perf_counter() - began)
        if number < len(tasks):
            missed += not {row.name for row in found} & set(task["skills"])
    await index.close()
    return [
        Figure(name=f"tasks without their skill among {WITHIN}", value=100 * missed / len(tasks), unit="%", limit=10),
        Figure(name="finding, p95", value=1000 * sorted(seconds)[int(0.95 * len(seconds))], unit="ms", limit=30),
    ]


def agreement(data: Path) -> Figure:
    """Skills of the public sets on which the format's own validator says otherwise than we do."""
    differ = 0
    for skill in pool(data):
        fields = {"name": skill.name, "description": skill.about}
        theirs = skills_ref.validator.validate_metadata(fields, Path("/", skill.name))
        differ += bool(theirs) != bool(problems(fields, skill.name))
    return Figure(name="skills judged otherwise than by the reference", value=differ, unit="skills", limit=0)


def pool(data: Path) -> Iterator[Indexed]:
    """The skills of the tasks with their bodies, then the others."""
    for name in ("pool.jsonl", "registry.jsonl"):
        for line in (data / name).read_text().splitlines():
            skill = json.loads(line)
            yield Indexed(
                folder=f"/{skill['name']}",
                root="/",
                name=skill["name"],
                stamp="1",
                about=skill["description"],
                body=skill.get("body", ""),
                card=b"{}",
            )
