"""Drafts of scheduled jobs: what somebody wants, checked and joined with what is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hermes_agent.app.chats.settings import ChannelSettings, place_named
from hermes_agent.app.work.cron_places import ALL, LOCAL, ORIGIN
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.scanner.scan import alarms
from hermes_agent.store.work.cron.records import CatchUp, Job, Kind, Overlap, Plan
from hermes_agent.tools.surfaces import check_toolset
from hermes_agent.work.cron.schedule import parse
from hermes_agent.work.cron.scripts import script_path

LONGEST_PROMPT = 20_000
OWNERS = ("script", "gate", "folder")
PLAIN = (
    "prompt",
    "script",
    "gate",
    "agent",
    "model",
    "effort",
    "folder",
    "window",
    "jitter",
    "seconds",
    "retries",
    "tokens",
    "quiet",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What somebody wants of a job; None leaves a thing as it is, or gives it its default. Lists are joined by
    commas."""

    schedule: str | None = None
    prompt: str | None = None
    name: str | None = None
    zone: str | None = None
    deliver: str | None = None
    skills: str | None = None
    script: str | None = None
    gate: str | None = None
    agent: bool | None = None
    model: str | None = None
    effort: str | None = None
    toolsets: str | None = None
    folder: str | None = None
    context_from: str | None = None
    catch_up: str | None = None
    overlap: str | None = None
    window: int | None = None
    jitter: int | None = None
    seconds: int | None = None
    retries: int | None = None
    repeat: int | None = None
    money: str | None = None
    ends: str | None = None
    tokens: int | None = None
    quiet: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """Makes plans of drafts, and checks them against the channels and scripts of a home."""

    channels: Mapping[str, ChannelSettings]
    scripts: Path
    toolsets: tuple[str, ...]

    def is_chat(self, origin: str) -> bool:
        """Whether letters can go to that conversation."""
        return bool(origin) and Conversation.parse(origin).platform in self.channels

    async def plan(self, who: Principal, draft: Draft, base: Plan, jobs: Sequence[Job]) -> Plan:
        """The plan with what a draft says; `jobs` are those that it may take the words of. Raises `HermesError`."""
        given = {each.name: getattr(draft, each.name) for each in fields(Draft)}
        said = {key: value for key, value in given.items() if value is not None}
        if who.standing is not Standing.OWNER and (own := [key for key in OWNERS if said.get(key)]):
            raise HermesError(f"Only the owner's jobs have a {own[0]}.")
        changes: dict[str, Any] = {key: said[key] for key in PLAIN if key in said}
        changes |= {key: _list(said[key]) for key in ("deliver", "skills") if key in said}
        if "toolsets" in said:
            changes["toolsets"] = _list(said["toolsets"]) or None
        if "catch_up" in said:
            changes["catch_up"] = _choice(CatchUp, said["catch_up"], "catch-up")
        if "overlap" in said:
            changes["overlap"] = _choice(Overlap, said["overlap"], "overlap")
        if "money" in said:
            changes["money"] = _dollars(said["money"])
        if "ends" in said:
            changes["ends"] = float(_moment(said["ends"], base)) if said["ends"] else None
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
            raise HermesError(
                f"The prompt is longer than {LONGEST_PROMPT:,} characters: put it into a file or a skill."
            )
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


def _choice(kind: type[CatchUp] | type[Overlap], said: str, what: str) -> CatchUp | Overlap:
    try:
        return kind(said)
    except ValueError as error:
        raise HermesError(f"`{said}` is no {what}: say {', '.join(each.value for each in kind)}.") from error


def _dollars(said: str) -> int | None:
    """US dollars as nanodollars; None for nothing said."""
    try:
        return int(float(said) * 1e9) if said else None
    except (ValueError, OverflowError) as error:
        raise HermesError(f"`{said}` is no amount of US dollars.") from error


def _moment(said: str, base: Plan) -> str:
    """The end of a job in seconds since 1970."""
    found = parse(said, base.schedule.zone, 0.0)
    if found.kind is not Kind.AT or said[:1].isalpha():
        raise HermesError(f"`{said}` is no time: say one such as 2026-12-24T18:00.")
    return found.spec


def _id_of(jobs: Sequence[Job], name: str) -> str:
    found = next((each.id for each in jobs if name in (each.id, each.name)), "")
    if not found:
        raise HermesError(f"There is no job `{name}` whose words it could read.")
    return found
