"""Settings of scheduled jobs."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSettings:
    """Settings of scheduled jobs (section `cron`)."""

    timezone: str = setting("", "Time zone of schedules, such as Europe/Rome; empty: this machine's.")
    max_parallel: int = setting(4, "Jobs that run at the same time.", least=1, most=100)
    max_jobs: int = setting(1000, "Jobs of one person.", least=1, most=100_000)
    run_seconds: int = setting(1800, "Seconds of one run, where the job does not say.", least=1, most=86_400)
    script_seconds: int = setting(3600, "Seconds of a job's script.", least=1, most=86_400)
    kept_outputs: int = setting(50, "Results that are kept as files, for each job.", least=1, most=10_000)
