"""Import of another agent's `jobs.json`: shows the jobs that it would make, and makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService
from hermes_agent.core.chat import Principal
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import read_small
from hermes_agent.scanner.scan import alarms
from hermes_agent.store.work.cron.records import Job, JobState, Kind
from hermes_agent.work.cron.schedule import LAST, local, upcoming, words

LARGEST = 16 << 20
Words = str | tuple[str, ...] | None
Number = Annotated[int, msgspec.Meta(ge=0, le=10**9)]


class Repeat(msgspec.Struct, frozen=True):
    """How often a job runs, and did."""

    times: Number | None = None
    completed: Number | None = 0


class Row(msgspec.Struct, frozen=True):
    """What is read of a job of the file."""

    id: str | int = ""
    name: str | None = ""
    prompt: str | None = ""
    schedule: str | Mapping[str, str | float | None] = ""
    deliver: Words = "local"
    skills: Words = ()
    skill: str | None = ""
    script: str | None = ""
    no_agent: bool | None = False
    model: str | None = ""
    provider: str | None = ""
    base_url: str | None = ""
    enabled_toolsets: Words = ()
    workdir: str | None = ""
    repeat: Repeat | None = None
    enabled: bool | None = True
    state: str | None = ""
    next_run_at: str | float | None = None
    context_from: Words = ()
    timezone: str | None = ""
    attach_to_session: bool | None = False

    @property
    def is_paused(self) -> bool:
        """Whether it does not run."""
        return self.enabled is False or self.state == "paused"


LEFT_OUT = ("attach_to_session", "base_url")


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
    own, found, ids = await service.all(who, own=True), list[Imported](), dict[str, str]()
    jobs: list[tuple[Row, Job, list[str]]] = []
    for number, each in enumerate(await asyncio.to_thread(_rows, file), 1):
        name = (str(each.get("name") or "") if isinstance(each, dict) else "") or f"number {number}"
        notes: list[str] = []
        try:
            row = msgspec.convert(each, Row, strict=False)
            job = await _job(service, who, row, name, own, notes)
        except (HermesError, msgspec.ValidationError) as error:
            found.append(Imported(name=name, problem=str(error), notes=tuple(notes)))
            continue
        if any(job.name == there.name for there in own):
            found.append(Imported(name=job.name, problem="there is a job of that name", notes=tuple(notes)))
            continue
        ids[str(row.id or job.name)] = job.id
        own.append(job)
        jobs.append((row, job, notes))
    linked = [(row, _linked(row, job, ids, notes), notes) for row, job, notes in jobs]
    made = await service.store.cron_jobs.add(*(job for _, job, _ in linked)) if make else frozenset()
    for row, job, notes in linked:
        schedule, theirs = job.plan.schedule, _moment(row.next_run_at)
        found.append(
            Imported(
                name=job.name,
                schedule=words(schedule),
                next="".join(upcoming(schedule, service.clock.now(), 1)),
                theirs=local(theirs, schedule.zone) if theirs is not None else "",
                state=job.state.value,
                made=job.id if job.id in made else "",
                notes=tuple(notes),
            )
        )
    return found


def _rows(file: str) -> Sequence[object]:
    path = Path(file).expanduser()
    content = read_small(path, LARGEST)
    if content is None:
        raise HermesError(f"There is no file {path}.")
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HermesError(f"{path} cannot be read as jobs: {error}") from error
    jobs = found.get("jobs") if isinstance(found, dict) else found
    if not isinstance(jobs, list):
        raise HermesError(f"{path} holds no list `jobs`.")
    return jobs


async def _job(service: CronService, who: Principal, row: Row, name: str, own: Sequence[Job], notes: list[str]) -> Job:
    notes += [f"`{key}` is not kept" for key in LEFT_OUT if getattr(row, key)]
    if found := alarms(row.prompt or ""):
        raise HermesError(f"its prompt looks like an attempt to mislead a model: {found[0].what}")
    draft = _draft(row, name, service, notes)
    job = await service.drafted(who, draft, author="import", own=own)
    job = replace(job, state=JobState.PAUSED, why="as it was imported") if row.is_paused else job
    theirs, schedule = _moment(row.next_run_at), job.plan.schedule
    if schedule.kind is not Kind.EVERY or theirs is None:
        return job
    anchored = replace(schedule, anchor=theirs - int(schedule.spec))  # In the beat of its next time.
    return replace(job, plan=replace(job.plan, schedule=anchored))


def _linked(row: Row, job: Job, ids: Mapping[str, str], notes: list[str]) -> Job:
    """The job with the jobs of the file whose words it reads."""
    names = _list(row.context_from)
    notes += [f"`context_from` {name} is no job of the file" for name in names if name not in ids]
    return replace(job, plan=replace(job.plan, context_from=tuple(ids[name] for name in names if name in ids)))


def _draft(row: Row, name: str, service: CronService, notes: list[str]) -> Draft:
    deliver, known = ",".join(_list(row.deliver)) or "local", service.settings.gateway.channels
    if not all(each in ("local", "all") or each.partition(":")[0] in known for each in deliver.split(",")):
        notes.append(f"delivery to `{deliver}` is not known here: results are files (`cron edit --deliver`)")
        deliver = "local"
    model, provider, repeat = row.model or "", row.provider or "", row.repeat or Repeat()
    return Draft(
        schedule=_schedule(row),
        prompt=row.prompt or "",
        name=" ".join(name.split())[:60],
        deliver=deliver,
        skills=",".join(_list(row.skills or row.skill)) or None,
        script=Path(row.script or "").name or None,
        agent=not row.no_agent,
        model=(f"{provider}/{model}" if provider and model and "/" not in model else model) or None,
        toolsets=",".join(_list(row.enabled_toolsets)) or None,
        folder=row.workdir or None,
        zone=row.timezone or None,
        repeat=max(1, repeat.times - (repeat.completed or 0)) if repeat.times else None,
    )


def _list(said: Words) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in said.split(",")))) if isinstance(said, str) else said or ()


def _schedule(row: Row) -> str:
    """The schedule as it would be typed."""
    if isinstance(row.schedule, str):
        return row.schedule
    values = {key: value for key, value in row.schedule.items() if value is not None and key != "kind"}
    match row.schedule.get("kind"):
        case "cron":
            return _first(values, "expr", "expression", "cron", "spec")
        case "interval" if "minutes" in values:
            return f"every {_first(values, 'minutes')}m"
        case "interval":
            return f"every {_first(values, 'seconds', 'every', 'interval')}s"
        case "once":
            return _first(values, "run_at", "at", "time", "when")
        case kind:
            raise HermesError(f"its kind of schedule `{kind}` is not known")


def _first(values: Mapping[str, str | float | None], *names: str) -> str:
    for name in names:
        if name in values:
            found = values[name]
            return f"{found:.0f}" if isinstance(found, float) else str(found)
    raise HermesError(f"its schedule has none of {', '.join(names)}")


def _moment(said: str | float | None) -> int | None:
    try:
        at = datetime.fromisoformat(said).timestamp() if isinstance(said, str) else float(said or 0)
    except (ValueError, OverflowError):
        return None
    return int(at) if 0 < at < LAST else None
