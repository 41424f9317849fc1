"""Blueprints: skills that propose a scheduled job, whose slots are filled in when it is made."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Trust
from hermes_agent.skills.invoke import SLOT, slots_of
from hermes_agent.skills.library import Library
from hermes_agent.skills.skill import Skill


@dataclass(frozen=True, slots=True, kw_only=True)
class BlueprintFacts:
    """A skill that proposes a job: when it would run, its slots (`name`, or `name=default`), and the names of the jobs
    that were made of it."""

    skill: str
    description: str
    schedule: str
    slots: tuple[str, ...]
    jobs: tuple[str, ...]


def blueprint_facts(skill: Skill, jobs: Sequence[str]) -> BlueprintFacts | None:
    """What a skill proposes; None where that is nothing."""
    if skill.ours.blueprint is None:
        return None
    slots = [each.name if each.default is None else f"{each.name}={each.default}" for each in skill.ours.parameters]
    return BlueprintFacts(
        skill=skill.name,
        description=skill.description,
        schedule=skill.ours.blueprint.schedule,
        slots=tuple(slots),
        jobs=tuple(jobs),
    )


async def filled_in(library: Library, name: str, folder: str, slots: Sequence[str]) -> dict[str, Any]:
    """The job that a skill proposes, by the names of `Draft`, with these values (`name=value`) in its slots. Raises
    `HermesError` for a skill without a blueprint, and for one of others: its words would be the owner's."""
    header = await library.find(name, folder)
    skill = await library.read(header)
    proposed = skill.ours.blueprint
    if proposed is None:
        raise HermesError(f"The skill {skill.name} proposes no job: `hermes cron blueprints` lists those that do.")
    if (await library.origin_of(header)).trust is not Trust.CLEAN:
        raise HermesError(
            f"Others wrote {skill.name}, or nobody known did: its words are no order of yours. `hermes learn adopt "
            f"{skill.name}` makes a skill of this home yours; `hermes cron add ... --skills {skill.name}` uses another."
        )
    values = slots_of(skill, shlex.join(slots))
    schedule, prompt = (
        SLOT.sub(lambda found: values.get(found[1], found[0]), text) for text in (proposed.schedule, proposed.prompt)
    )
    said = "; ".join(f"{key}: {value}" for key, value in values.items())
    return {
        "schedule": schedule,
        "prompt": prompt or (f"Follow the skill {skill.name}. {said}".strip() if not proposed.no_agent else ""),
        "name": skill.name,
        "skills": skill.name,
        "deliver": proposed.deliver,
        "script": proposed.script,
        "no_agent": proposed.no_agent,
    }


def blueprint_line(found: BlueprintFacts) -> str:
    """One blueprint in a list."""
    slots = f" ({', '.join(found.slots)})" if found.slots else ""
    made = f" [made: {', '.join(found.jobs)}]" if found.jobs else ""
    return f"{found.skill}{slots}: {found.schedule} - {found.description}{made}"
