"""Drafts of scheduled jobs: what somebody wants or a skill proposes, checked and joined with what is there."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from hermes_agent.app.chats.settings import ChannelSettings, GatewaySettings, homes_in, place_named
from hermes_agent.core.chat import Conversation, Principal, Standing, Standings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Trust
from hermes_agent.host.paths import Home
from hermes_agent.providers.vendor import Level
from hermes_agent.scanner.scan import alarms
from hermes_agent.skills.invoke import SLOT, slots_of
from hermes_agent.skills.library import Library
from hermes_agent.skills.skill import Skill
from hermes_agent.store.work.cron.records import FRESH, SAME, CatchUp, Job, Kind, Overlap, Plan
from hermes_agent.tools.surfaces import check_toolset
from hermes_agent.work.cron.firing import script_path
from hermes_agent.work.cron.schedule import parse

LONGEST_PROMPT = 1_000_000
NUMBERS: Mapping[str, int] = {
    "window": 31 * 86_400,
    "jitter": 86_400,
    "seconds": 86_400,
    "retries": 20,
    "tokens": 10**12,
    "repeat": 10**9,
}
"""The most that a number of a job may be."""
OWNERS = ("script", "gate", "folder")
ELSEWHERE = ("schedule", "name", "zone", "repeat", "ends", "context_from")
"""What of a draft is no field of a plan, or needs more than its text."""


Draft = dict[str, Any]
"""What somebody wants of a job, by the names of `READ` and `ELSEWHERE`; what is left out, or None, stays as it is, or
has its default. Lists are joined by commas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """Makes plans of drafts, and checks them against the channels and scripts of a home."""

    channels: Mapping[str, ChannelSettings]
    scripts: Path
    toolsets: tuple[str, ...]

    def is_chat(self, origin: str) -> bool:
        """Whether letters can go to that conversation."""
        return bool(origin) and Conversation.parse(origin).platform in self.channels

    async def plan(self, who: Principal, draft: Draft, base: Plan, jobs: Sequence[Job], now: float) -> Plan:
        """The plan with what a draft says; `jobs` are those that it may take the words of. Raises `HermesError`."""
        said = {key: value for key, value in draft.items() if value is not None}
        if who.standing is not Standing.OWNER and (own := [key for key in OWNERS if said.get(key)]):
            raise HermesError(f"Only the owner's jobs have a {own[0]}.")
        for name, most in NUMBERS.items():
            if not 0 <= said.get(name, 0) <= most or (name == "seconds" and said.get(name) == 0):
                raise HermesError(f"`{name}` is a number up to {most:,}.")
        changes = {key: READ[key](value) for key, value in said.items() if key not in ELSEWHERE}
        if "ends" in said:
            changes["ends"] = float(_moment(said["ends"], base, now)) if said["ends"] else None
        if "context_from" in said:
            changes["context_from"] = tuple(_id_of(jobs, each) for each in _list(said["context_from"]))
        made = replace(base, **changes)
        await asyncio.to_thread(self._check_plan, who, made)
        return made

    def _check_plan(self, who: Principal, made: Plan) -> None:
        if made.agent and not made.prompt.strip():
            raise HermesError("Say what the job shall do: it has no prompt.")
        if not made.agent and not made.script:
            raise HermesError("A job without an agent needs a script: its output is the message.")
        if len(made.prompt) > LONGEST_PROMPT:
            raise HermesError(f"The prompt is longer than {LONGEST_PROMPT:,} characters: put it into a file.")
        if made.session == SAME and made.overlap is Overlap.STOP:
            raise HermesError("A job that continues one session cannot stop its own run: say `skip` or `queue`.")
        for script in filter(None, (made.script, made.gate)):
            script_path(self.scripts, script)
        if made.folder and not Path(made.folder).is_dir():
            raise HermesError(f"{made.folder} is not a folder.")
        for name in made.toolsets or ():
            check_toolset(name, self.toolsets)
        if made.author == "agent" and (found := alarms(made.prompt)):
            raise HermesError(f"The prompt looks like an attempt to mislead a model: {found[0].what}.")
        for target in made.deliver:
            self._check_target(who, target, made)

    def _check_target(self, who: Principal, target: str, made: Plan) -> None:
        channels = self.channels
        if target == LOCAL or (target == ORIGIN and self.is_chat(made.origin)):
            return
        if target == ORIGIN:
            raise HermesError("The job was made in no chat: deliver to `local`, a channel or CHANNEL:CHAT.")
        if who.standing is not Standing.OWNER:
            raise HermesError("Only the owner's jobs are delivered elsewhere: say `origin` or `local`.")
        if target == ALL and any(each.home for each in channels.values()):
            return
        place = place_named(target, channels)
        if place is None or place.platform not in channels:
            raise HermesError(
                f"`{target}` names no chat: say `origin`, `local`, `all`, CHANNEL:CHAT[:THREAD], or a channel "
                "that has a home (`/sethome`)."
            )


def _list(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _choice(known: Sequence[str], said: str, what: str) -> str:
    if said not in known:
        raise HermesError(f"`{said}` is no {what}: say {', '.join(known)}.")
    return said


def _dollars(said: str) -> int | None:
    """US dollars as nanodollars; None for nothing said."""
    try:
        found = float(said or 0)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e9:
        raise HermesError(f"`{said}` is no amount of US dollars.")
    return int(found * 1e9) or None


def _moment(said: str, base: Plan, now: float) -> str:
    """The end of a job in seconds since 1970."""
    found = parse(said, base.schedule.zone, now)
    if found.kind is not Kind.AT:
        raise HermesError(f"`{said}` is no time: say one such as 2026-12-24T18:00.")
    return found.spec


def _id_of(jobs: Sequence[Job], name: str) -> str:
    found = next((each.id for each in jobs if name in (each.id, each.name)), "")
    if not found:
        raise HermesError(f"There is no job `{name}` whose words it could read.")
    return found


READ: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("prompt", "script", "gate", "model", "folder"), str),
    **dict.fromkeys(("agent", "quiet"), bool),
    **dict.fromkeys(("window", "jitter", "seconds", "retries"), int),
    "deliver": _list,
    "skills": _list,
    "toolsets": lambda said: _list(said) or None,
    "effort": lambda said: said and _choice(get_args(Level), said, "effort"),
    "catch_up": lambda said: CatchUp(_choice(tuple(CatchUp), said, "catch-up")),
    "overlap": lambda said: Overlap(_choice(tuple(Overlap), said, "overlap")),
    "money": _dollars,
    "session": lambda said: _choice((FRESH, SAME), said, "kind of session"),
    "tokens": lambda said: said or None,
}
"""What a field of a plan is made of, where a draft has it in words."""


ORIGIN, LOCAL, ALL = "origin", "local", "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """The chats of a job's letters, by the settings of the channels."""

    gateway: GatewaySettings
    standings: Standings

    def targets(self, job: Job) -> Sequence[Conversation]:
        """The chats that its results go to."""
        found = [each for target in job.plan.deliver for each in self._named(target, job)]
        return list({each.key: each for each in found}.values())

    def gone(self, job: Job) -> Sequence[Conversation]:
        """The chats of its results that the settings have no more."""
        lost = [target for target in job.plan.deliver if target != LOCAL and not self._named(target, job)]
        origin = Conversation.parse(job.plan.origin).place if job.plan.origin else None
        return [
            (origin if target == ORIGIN else place_named(target, {})) or Conversation(platform=target)
            for target in lost
        ]

    def homes(self, job: Job) -> Sequence[Conversation]:
        """The chats that are told of failures: the home of the owner, or where a member made the job."""
        origin = self._named(ORIGIN, job)
        if not self.standings.is_owner(job.principal) and origin:
            return origin
        homes = self._named(ALL, job)
        made_in = [each for each in homes if each.platform == job.plan.origin.partition(":")[0]]
        return (made_in or homes or origin)[:1]

    def _named(self, target: str, job: Job) -> list[Conversation]:
        channels = self.gateway.channels
        if target == LOCAL:
            return []
        if target == ALL:
            return homes_in(channels)
        if target == ORIGIN:
            made_in = Conversation.parse(job.plan.origin) if job.plan.origin else None
            return [made_in.place] if made_in is not None and made_in.platform in channels else []
        found = place_named(target, channels)
        return [found] if found is not None and found.platform in channels else []


def scripts_in(home: Home) -> Path:
    """The folder of the scripts of jobs."""
    return home.root / "scripts"


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
