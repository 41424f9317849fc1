"""Endpoints `/v1/jobs`: list, make, show, change, run and remove scheduled jobs, and show what came of each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import msgspec

from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing
from hermes_agent.api.problems import missing
from hermes_agent.api.response_schemas import Removed
from hermes_agent.app.operations import cron as operations

Short = Annotated[str, msgspec.Meta(max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]


class JobChange(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Body of a change of a job: what is left out stays. Lists are joined by commas."""

    schedule: Short = ""
    prompt: str = ""
    name: Short = ""
    zone: Short = ""
    deliver: Short = ""
    skills: Short = ""
    script: Short = ""
    gate: Short = ""
    no_agent: bool = False
    agent: bool = False
    model: Short = ""
    effort: Short = ""
    toolsets: Short = ""
    folder: str = ""
    context_from: Short = ""
    catch_up: Literal["", "skip", "last", "all"] = ""
    overlap: Literal["", "skip", "queue", "stop"] = ""
    window: Count = -1
    jitter: Count = -1
    seconds: Count = -1
    repeat: Count = -1
    ends: Short = ""
    money: Short = ""
    tokens: Count = -1
    retries: Count = -1
    quiet: bool = False
    loud: bool = False
    session: Literal["", "fresh", "same"] = ""


class JobRequest(JobChange, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Body of a request for a job: its schedule and prompt, and what `hermes cron create` takes as options."""

    schedule: Short


class RunsQuery(msgspec.Struct, kw_only=True):
    """Query for the times of a job, the latest first."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 20


class JobRun(msgspec.Struct, kw_only=True):
    """A time of a job: `due` in seconds since 1970, what came of it, and whether that was delivered."""

    due: int
    state: str
    why: str
    counts: int
    session: str
    started: float | None
    ended: float | None
    words: str
    delivery: str


class JobObject(msgspec.Struct, kw_only=True):
    """A scheduled job: its schedule in words, its next local times, and the last time with its delivery."""

    id: str
    name: str
    state: str
    why: str
    schedule: str
    next: list[str]
    deliver: list[str]
    prompt: str
    principal: str
    remaining: int | None
    last: JobRun | None
    notice: str
    object: Literal["job"] = "job"


class JobList(msgspec.Struct, kw_only=True):
    """Scheduled jobs."""

    data: list[JobObject]
    object: Literal["list"] = "list"


class JobRuns(msgspec.Struct, kw_only=True):
    """Times of a job."""

    data: list[JobRun]
    object: Literal["list"] = "list"


async def list_jobs(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """List the jobs of this principal; the owner's key has everybody's."""
    return JobList(data=[_job(each) for each in await operations.list_jobs(state.access(call.who))])


async def create(state: AppState, call: Call[JobRequest, Nothing]) -> Answer:
    """Make a job."""
    return _job(await operations.create_job(state.access(call.who), **msgspec.to_builtins(call.body)))


async def show(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Show one job."""
    with _known():
        return _job(await operations.show_job(state.access(call.who), call.path["id"]))


async def edit(state: AppState, call: Call[JobChange, Nothing]) -> Answer:
    """Change a job."""
    with _known():
        changes = msgspec.to_builtins(call.body)
        return _job(await operations.edit_job(state.access(call.who), call.path["id"], **changes))


async def remove(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Remove a job."""
    with _known():
        await operations.remove_job(state.access(call.who), call.path["id"])
    return Removed(id=call.path["id"])


async def pause(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Pause a job."""
    with _known():
        return _job(await operations.pause_job(state.access(call.who), call.path["id"]))


async def resume(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Let a job go on."""
    with _known():
        return _job(await operations.resume_job(state.access(call.who), call.path["id"]))


async def run(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Have a job run at once."""
    with _known():
        return _job(await operations.run_job(state.access(call.who), call.path["id"]))


async def runs(state: AppState, call: Call[Nothing, RunsQuery]) -> Answer:
    """List the times of a job."""
    with _known():
        found = await operations.list_runs(state.access(call.who), call.path["id"], call.query.limit)
    return JobRuns(data=[_run(each) for each in found])


@contextmanager
def _known() -> Iterator[None]:
    try:
        yield
    except operations.UnknownJob as error:
        raise missing(str(error)) from error


def _job(found: operations.JobFacts) -> JobObject:
    return msgspec.convert(found, JobObject, from_attributes=True)


def _run(found: operations.InstantFacts) -> JobRun:
    return msgspec.convert(found, JobRun, from_attributes=True)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/jobs",
        act=list_jobs,
        summary="Your scheduled jobs; the owner's key shows everybody's.",
        answer=JobList,
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs",
        act=create,
        summary="Make a scheduled job.",
        body=JobRequest,
        answer=JobObject,
        status=201,
    ),
    Endpoint(method="GET", path="/v1/jobs/{id}", act=show, summary="One job.", answer=JobObject),
    Endpoint(method="PATCH", path="/v1/jobs/{id}", act=edit, summary="Change a job.", body=JobChange, answer=JobObject),
    Endpoint(method="DELETE", path="/v1/jobs/{id}", act=remove, summary="Remove a job.", answer=Removed),
    Endpoint(method="POST", path="/v1/jobs/{id}/pause", act=pause, summary="Pause a job.", answer=JobObject),
    Endpoint(method="POST", path="/v1/jobs/{id}/resume", act=resume, summary="Let a job go on.", answer=JobObject),
    Endpoint(method="POST", path="/v1/jobs/{id}/run", act=run, summary="Have a job run at once.", answer=JobObject),
    Endpoint(
        method="GET",
        path="/v1/jobs/{id}/runs",
        act=runs,
        summary="What came of each time of a job.",
        query=RunsQuery,
        answer=JobRuns,
    ),
)
