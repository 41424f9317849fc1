"""Endpoints `/v1/jobs`: list, make, show, change, run and remove scheduled jobs, and show what came of each time."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hermes_agent.api.endpoint import Endpoint, asks, body_of, removes
from hermes_agent.api.response_schemas import Removed, list_of
from hermes_agent.app.operations import cron as operations


class RunsQuery(msgspec.Struct, kw_only=True):
    """Query for the times of a job, the latest first."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 20


JobList = list_of("JobList", operations.JobFacts, "Scheduled jobs.")
JobRuns = list_of(
    "JobRuns",
    operations.InstantFacts,
    "Times of a job: `due` in seconds since 1970, what came of each, and whether that was delivered.",
)
JobRequest = body_of("JobRequest", operations.CREATES, "Body of a request for a job. Lists are joined by commas.")
JobChange = body_of("JobChange", operations.EDITS, "Body of a change of a job: what is left out stays.")
JOB = operations.JobFacts
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/jobs",
        act=asks(operations.list_jobs, lambda found: JobList(data=found)),
        summary="Your scheduled jobs; the owner's key shows everybody's.",
        answer=JobList,
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs",
        act=asks(operations.create_job),
        summary="Make a scheduled job.",
        body=JobRequest,
        answer=JOB,
        status=201,
    ),
    Endpoint(method="GET", path="/v1/jobs/{id}", act=asks(operations.show_job), summary="One job.", answer=JOB),
    Endpoint(
        method="PATCH",
        path="/v1/jobs/{id}",
        act=asks(operations.edit_job),
        summary="Change a job.",
        body=JobChange,
        answer=JOB,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/jobs/{id}",
        act=removes(operations.remove_job),
        summary="Remove a job.",
        answer=Removed,
    ),
    *(
        Endpoint(method="POST", path=f"/v1/jobs/{{id}}/{verb}", act=asks(act), summary=summary, answer=JOB)
        for verb, act, summary in (
            ("pause", operations.pause_job, "Pause a job."),
            ("resume", operations.resume_job, "Let a job go on."),
            ("run", operations.run_job, "Have a job run at once."),
        )
    ),
    Endpoint(
        method="GET",
        path="/v1/jobs/{id}/runs",
        act=asks(operations.list_runs, lambda found: JobRuns(data=found)),
        summary="What came of each time of a job.",
        query=RunsQuery,
        answer=JobRuns,
    ),
)
