"""Operations on scheduled jobs: make, list, change, run and remove them, and show what came of each time."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Any

from hermes_agent.app.manifest import TOOLSETS
from hermes_agent.app.operations.access import Access, Argument, HomeSystem, Kind, Noun, option, place, verb
from hermes_agent.app.operations.skills import EVERY, open_skills
from hermes_agent.app.work.cron_drafts import BlueprintFacts, Draft, blueprint_facts, blueprint_line, filled_in
from hermes_agent.app.work.cron_imports import Imported, import_jobs, imported_text
from hermes_agent.app.work.cron_jobs import CronService, InstantFacts, JobFacts, job_line, job_text, run_line
from hermes_agent.core.chat import Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.work.cron.records import InstantState, Job, JobState
from hermes_agent.work.cron.schedule import instants, local

NONE = "none"
NOT_SAID = -1
__all__ = ["InstantFacts", "JobFacts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Whether jobs are run, and how many there are: `on`, due next (seconds since 1970), under way, and those whose
    last time went wrong or was not delivered, by name."""

    served: bool
    jobs: int
    on: int
    next: int | None
    running: int
    wrong: tuple[str, ...]
    notice: str = ""
    zone: str = "UTC"


def jobs_of(access: Access[HomeSystem]) -> CronService:
    """The jobs that this access reaches."""
    system = access.system
    return CronService(
        store=system.store,
        clock=system.clock,
        settings=system.settings,
        home=system.home,
        toolsets=tuple(TOOLSETS),
        where=access.where,
    )


async def list_jobs(access: Access[HomeSystem]) -> list[JobFacts]:
    """A person's jobs; the owner's list has everybody's."""
    service = jobs_of(access)
    notice = await service.served()
    found = [await service.facts(job) for job in await service.all(access.who)]
    return [*found[:-1], replace(found[-1], notice=notice)] if found else []


async def create_job(access: Access[HomeSystem], schedule: str, prompt: str = "", **given: Any) -> JobFacts:  # noqa: ANN401  what options gave
    """Make a job."""
    where = access.where.key if access.where is not None else ""
    draft = _draft(schedule=schedule, prompt=prompt, **given)
    return await _facts(access, jobs_of(access).create(access.who, draft, where, _author(access)))


async def list_blueprints(access: Access[HomeSystem]) -> list[BlueprintFacts]:
    """The skills that propose a job, and the jobs that were made of them."""
    jobs = await jobs_of(access).all(access.who)
    async with open_skills(access) as shelf:
        library = shelf.kept.library
        skills = [await library.read(header) for header in await library.all(access.folder, limit=EVERY)]
    found = [blueprint_facts(each, [job.name for job in jobs if each.name in job.plan.skills]) for each in skills]
    return [each for each in found if each is not None]


async def use_blueprint(access: Access[HomeSystem], skill: str, slots: Sequence[str] = (), name: str = "") -> JobFacts:
    """Make the job that a skill proposes, with the values of its slots as `name=value`."""
    async with open_skills(access) as shelf:
        given = await filled_in(shelf.kept.library, skill, access.folder, slots)
    return await create_job(access, **given | ({"name": name} if name else {}))


async def edit_job(access: Access[HomeSystem], job: str, **given: Any) -> JobFacts:  # noqa: ANN401  what options gave
    """Change a job."""
    return await _facts(access, jobs_of(access).edit(access.who, job, _draft(**given), _author(access)))


def _author(access: Access[HomeSystem]) -> str:
    """Whose words a job is written in; empty: the person's."""
    return Standing.MEMBER.value if access.is_program else ""


async def show_job(access: Access[HomeSystem], job: str) -> JobFacts:
    """One job."""
    return await _facts(access, jobs_of(access).find(access.who, job))


async def pause_job(access: Access[HomeSystem], job: str) -> JobFacts:
    """Pause a job."""
    return await _facts(access, jobs_of(access).pause(access.who, job))


async def resume_job(access: Access[HomeSystem], job: str) -> JobFacts:
    """Let a paused, broken or finished job go on."""
    return await _facts(access, jobs_of(access).resume(access.who, job))


async def run_job(access: Access[HomeSystem], job: str) -> JobFacts:
    """Have a job run at once."""
    return await _facts(access, jobs_of(access).run_now(access.who, job))


async def _facts(access: Access[HomeSystem], job: Awaitable[Job]) -> JobFacts:
    service = jobs_of(access)
    return await service.facts(await job, await service.served())


async def remove_job(access: Access[HomeSystem], job: str) -> str:
    """Remove a job; says its name."""
    return f"{(await jobs_of(access).remove(access.who, job)).name} is removed."


async def list_runs(access: Access[HomeSystem], job: str, limit: int = 20) -> list[InstantFacts]:
    """What came of a job's times, the latest first."""
    service = jobs_of(access)
    return await service.runs(await service.find(access.who, job), limit)


async def status(access: Access[HomeSystem]) -> Status:
    """Whether somebody runs the jobs, and which went wrong."""
    service, now = jobs_of(access), access.system.clock.now()
    jobs = await service.all(access.who)
    found = [await service.facts(job) for job in jobs]
    dues = [next(instants(job.plan.schedule, int(now)), None) for job in jobs if job.state is JobState.ON]
    ahead = await access.system.store.cron_instants.ahead(1)
    notice = await service.served()
    return Status(
        served=not notice,
        jobs=len(found),
        on=len(dues),
        next=min((due for due in dues if due is not None), default=None),
        running=ahead.running,
        wrong=tuple(each.name for each in found if went_wrong(each)),
        notice=notice,
        zone=service.zone,
    )


async def is_idle(access: Access[HomeSystem]) -> bool:
    """Whether nothing is due or under way."""
    system = access.system
    ahead, now = await system.store.cron_instants.ahead(system.settings.cron.max_parallel), system.clock.now()
    is_due = any(each is not None and each <= now for each in (ahead.ready_at, ahead.look_at))
    return not is_due and not ahead.running and not ahead.unfiled


async def import_file(access: Access[HomeSystem], file: str, yes: bool = False) -> list[Imported]:
    """Read the jobs of another agent's `jobs.json`; with `yes` make them."""
    access.check_owner("Only the owner imports jobs.")
    return await import_jobs(jobs_of(access), access.who, file, make=yes)


def went_wrong(job: JobFacts) -> bool:
    """Whether a job is broken, or its last time went wrong or was not delivered."""
    last = job.last
    bad = last is not None and (
        last.state in (InstantState.FAILED.value, InstantState.MISSED.value) or last.delivery in ("failed", "unsure")
    )
    return job.state == JobState.BROKEN.value or bad


def status_text(found: Status) -> str:
    """The status in sentences."""
    lines = [found.notice or "Jobs are run."]
    lines += [f"{found.on} of {found.jobs} jobs are on; {found.running} under way."]
    lines += [f"Next: {local(found.next, found.zone)}."] if found.next else []
    lines += [f"Went wrong the last time: {', '.join(found.wrong)}."] if found.wrong else []
    return "\n".join(lines)


def _draft(**given: Any) -> Draft:  # noqa: ANN401  what options gave
    """The draft of what was given: an empty text, False and -1 say nothing, and the word `none` takes a thing away."""
    said = {key: value for key, value in given.items() if value not in ("", None, NOT_SAID) and value is not False}
    said |= {key: "" for key, value in said.items() if value == NONE and key != "prompt"}
    if said.pop("no_agent", False):
        said["agent"] = False
    if said.pop("loud", False):
        said["quiet"] = False
    return said


def _text(name: str, about: str) -> Argument:
    return option(name, f"--{name.replace('_', '-')}", about, Kind.TEXT, "")


def _number(name: str, about: str) -> Argument:
    return option(name, f"--{name.replace('_', '-')}", about, Kind.NUMBER, NOT_SAID)


OPTIONS = (
    _text("name", "Name of the job; by default the first words of its prompt."),
    _text("deliver", "Where results go: origin, local, all, CHANNEL or CHANNEL:CHAT; several by commas."),
    _text("zone", "Time zone, such as Europe/Rome."),
    _text("skills", "Skills to load first, by commas."),
    _text("script", "A file of `scripts/` in the home; its output stands before the prompt."),
    _text("gate", "A file of `scripts/` that decides whether the job runs: exit code 0 is yes."),
    option("no_agent", "--no-agent", "Ask no model: the script's output is the message."),
    _text("model", "Model of its runs."),
    _text("effort", "Reasoning effort of its runs."),
    _text("toolsets", "The only toolsets of its runs, by commas."),
    _text("folder", "Folder in which it works."),
    _text("context_from", "Jobs whose last results stand before the prompt, by commas."),
    _text("catch_up", "After an outage: skip, last (the default) or all."),
    _text("overlap", "While it still runs: skip (the default), queue or stop."),
    _number("window", "Seconds by which it may begin late."),
    _number("jitter", "Most seconds of a delay that spreads jobs of one time."),
    _number("seconds", "Seconds of one run."),
    _number("repeat", "How often it runs; 0: without end."),
    _text("ends", "Time after which it runs no more."),
    _text("money", "Most US dollars of one run."),
    _number("tokens", "Most tokens of one run."),
    _number("retries", "Tries after a failure of the provider."),
    _text("session", "fresh: each run has a session of its own (the default); same: they continue one."),
    option("quiet", "--quiet", "Show failures in lists alone."),
)
CREATES = (place("schedule"), place("prompt", default=""), *OPTIONS)
EDITS = (
    _text("schedule", "Another schedule."),
    _text("prompt", "Another prompt."),
    *OPTIONS,
    option("agent", "--agent", "Ask a model again."),
    option("loud", "--loud", "Report failures again."),
)
CRON = Noun(
    name="cron",
    offline=True,
    short_help="Run jobs at times, and see what came of each.",
    help=(
        "Run jobs at times, and see what came of each. `hermes cron add 'every day at 09:00' 'Sum up my mail'` "
        "makes one; `hermes gateway run` or `hermes worker` runs it."
    ),
    verbs=(
        verb(
            "list",
            "List the jobs.",
            list_jobs,
            text=lambda found: "\n".join(map(job_line, found)),
            nothing="There are no jobs.",
        ),
        verb(
            "add",
            "Add a job: a schedule (`0 9 * * 1-5`, `every 90m`, `in 20m`, a time) and a prompt.",
            create_job,
            *CREATES,
            text=job_text,
        ),
        verb(
            "blueprints",
            "List the skills that propose a job, and the jobs made of them.",
            list_blueprints,
            text=lambda found: "\n".join(map(blueprint_line, found)),
            nothing="No skill proposes a job.",
        ),
        verb(
            "blueprint",
            "Make the job that a skill proposes; its slots are NAME=VALUE.",
            use_blueprint,
            place("skill", Kind.SKILL),
            place("slots", Kind.NAMES, ""),
            _text("name", "Name of the job; by default the skill's."),
            text=job_text,
        ),
        verb("show", "Show a job.", show_job, place("job"), text=job_text),
        verb(
            "next",
            "Show the next times of a job.",
            show_job,
            place("job"),
            text=lambda job: "\n".join(job.next) or f"{job.name} is {job.state}: it has no next time.",
        ),
        verb(
            "edit",
            "Change a job.",
            edit_job,
            place("job"),
            *EDITS,
            text=job_text,
        ),
        verb("pause", "Pause a job.", pause_job, place("job"), text=job_text),
        verb("resume", "Let a job go on.", resume_job, place("job"), text=job_text),
        verb("run", "Have a job run at once.", run_job, place("job"), text=job_text),
        verb("remove", "Remove a job.", remove_job, place("job")),
        verb(
            "runs",
            "Show what came of each time of a job, and whether it was delivered.",
            list_runs,
            place("job"),
            option("limit", "--limit", "How many.", Kind.COUNT, 20),
            text=lambda found: "\n".join(map(run_line, found)),
            nothing="It has not run yet.",
        ),
        verb("status", "Show whether jobs are run, and which went wrong.", status, text=status_text),
        verb(
            "import",
            "Read the jobs of another agent's jobs.json, and show them; with --yes make them.",
            import_file,
            place("file"),
            option("yes", "--yes", "Make the jobs."),
            text=lambda found: "\n".join(map(imported_text, found)),
            nothing="There are no jobs in it.",
        ),
    ),
)
