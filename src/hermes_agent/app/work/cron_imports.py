"""Import of another agent's `jobs.json`: shows the jobs that it would make, and makes them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService
from hermes_agent.core.chat import Principal
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import read_small
from hermes_agent.scanner.scan import alarms
from hermes_agent.store.work.cron.records import Job, JobState, Kind
from hermes_agent.work.cron.schedule import instants, local

LARGEST = 16 << 20
LEFT_OUT = ("attach_to_session", "base_url", "provider")
FALSE = (False, "false", "False", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A job of the file: what it becomes, when it comes next here and by the file, and what of it is not kept;
    `problem` says why it is not imported."""

    name: str
    schedule: str = ""
    next: str = ""
    theirs: str = ""
    state: str = ""
    made: str = ""
    notes: tuple[str, ...] = ()
    problem: str = ""


def imported_text(found: Imported) -> str:
    """A job of the file on one line, and its notes."""
    if found.problem:
        return f"{found.name}: not imported: {found.problem}"
    head = f"{found.name}: {found.schedule}; next {found.next or 'never'} ({found.state})"
    made = [f"  made as {found.made}"] if found.made else []
    other = [f"  the file says {found.theirs}"] if found.theirs and found.theirs != found.next else []
    return "\n".join([head, *other, *(f"  {note}" for note in found.notes), *made])


async def import_jobs(service: CronService, who: Principal, file: str, *, make: bool) -> list[Imported]:
    """The jobs of a file; with `make` they are there afterwards. Raises `HermesError` for a file that is none."""
    rows = await asyncio.to_thread(_rows, file)
    return [await _one(service, who, row, make=make) for row in rows]


def _rows(file: str) -> list[dict[str, Any]]:
    path = Path(file).expanduser()
    try:
        content = read_small(path, LARGEST)
        found = json.loads(content or b"")
    except (OSError, ValueError) as error:
        raise HermesError(f"{path} cannot be read as jobs: {error}") from error
    jobs = found.get("jobs") if isinstance(found, dict) else found
    if not isinstance(jobs, list):
        raise HermesError(f"{path} holds no list `jobs`.")
    return [each for each in jobs if isinstance(each, dict)]


async def _one(service: CronService, who: Principal, row: dict[str, Any], *, make: bool) -> Imported:
    name = str(row.get("name") or row.get("id") or "job")[:60]
    notes = [f"`{key}` is not kept" for key in LEFT_OUT if row.get(key)]
    try:
        prompt = str(row.get("prompt") or "")
        if found := alarms(prompt):
            raise HermesError(f"its prompt looks like an attempt to mislead a model: {found[0].what}")
        draft = _draft(row, name, prompt, service, notes)
        job = await service.drafted(who, draft, author="import")
    except (HermesError, ValueError, TypeError) as error:
        return Imported(name=name, problem=str(error), notes=tuple(notes))
    job, now = _as_there(job, row), service.clock.now()
    if make and not await service.store.cron_jobs.add(job):
        return Imported(name=name, problem="there is a job of that name", notes=tuple(notes))
    due, theirs = next(instants(job.plan.schedule, int(now)), None), _moment(row.get("next_run_at"))
    zone = job.plan.schedule.zone
    return Imported(
        name=name,
        schedule=(await service.facts(job)).schedule,
        next=local(due, zone) if due is not None else "",
        theirs=local(theirs, zone) if theirs is not None else "",
        state=job.state.value,
        made=job.id if make else "",
        notes=tuple(notes),
    )


def _draft(row: dict[str, Any], name: str, prompt: str, service: CronService, notes: list[str]) -> Draft:
    repeat = given if isinstance(given := row.get("repeat"), dict) else {}
    times, completed = repeat.get("times"), repeat.get("completed") or 0
    deliver = str(row.get("deliver") or "local")
    if deliver == "origin" or not _reaches(service, deliver):
        notes.append(f"delivery to `{deliver}` is not known here: results are files (`cron edit --deliver`)")
        deliver = "local"
    script = str(row.get("script") or "")
    return Draft(
        schedule=_schedule(row),
        prompt=prompt,
        name=name,
        deliver=deliver,
        skills=",".join(row.get("skills") or ()) or None,
        script=Path(script).name or None,
        agent=not row.get("no_agent"),
        model=_model(row) or None,
        toolsets=",".join(row.get("enabled_toolsets") or ()) or None,
        folder=str(row.get("workdir") or "") or None,
        repeat=max(1, int(times) - int(completed)) if times else None,
    )


def _reaches(service: CronService, deliver: str) -> bool:
    channels = service.settings.gateway.channels
    return deliver in ("local", "all") or deliver.partition(":")[0] in channels


def _model(row: dict[str, Any]) -> str:
    """The model as `provider/name`, where the file has both."""
    model, provider = str(row.get("model") or ""), str(row.get("provider") or "")
    return f"{provider}/{model}" if provider and model and "/" not in model else model


def _schedule(row: dict[str, Any]) -> str:
    """The schedule as it would be typed."""
    said = row.get("schedule")
    if isinstance(said, str):
        return said
    if not isinstance(said, dict):
        raise HermesError("it has no schedule")
    values = {key: value for key, value in said.items() if value is not None and key != "kind"}
    match said.get("kind"):
        case "cron":
            return str(_first(values, "expr", "expression", "cron", "spec"))
        case "interval":
            minutes = values.get("minutes")
            return f"every {minutes}m" if minutes else f"every {_first(values, 'seconds', 'every', 'interval')}s"
        case "once":
            return str(_first(values, "run_at", "at", "time", "when"))
        case kind:
            raise HermesError(f"its kind of schedule `{kind}` is not known")


def _first(values: dict[str, Any], *names: str) -> Any:  # noqa: ANN401  whatever the file holds
    for name in names:
        if name in values:
            return values[name]
    raise HermesError(f"its schedule has none of {', '.join(names)}")


def _as_there(job: Job, row: dict[str, Any]) -> Job:
    """The job in the state in which it was: paused, and in the beat of its next time."""
    is_off = row.get("enabled") in FALSE or row.get("state") == "paused"
    job = replace(job, state=JobState.PAUSED, why="as it was imported") if is_off else job
    theirs, schedule = _moment(row.get("next_run_at")), job.plan.schedule
    if schedule.kind is not Kind.EVERY or theirs is None:
        return job
    anchored = replace(schedule, anchor=theirs - int(schedule.spec))
    return replace(job, plan=replace(job.plan, schedule=anchored))


def _moment(said: Any) -> int | None:  # noqa: ANN401  whatever the file holds
    if isinstance(said, int | float):
        return int(said)
    try:
        return int(datetime.fromisoformat(str(said)).timestamp())
    except ValueError:
        return None
