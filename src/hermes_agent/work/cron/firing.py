"""Firing of instants: plans jobs, claims what is due, runs gates and scripts, and starts sessions."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, HomeError, LostLease, StoreError
from hermes_agent.core.events import MessageTaken, RunEnded
from hermes_agent.host.paths import read_small
from hermes_agent.host.tasks import cancelled, spawn
from hermes_agent.sandbox.place import Command, Place, begun, end_of_output
from hermes_agent.store.claims import Lease
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending, Mail
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.cron.records import MANUAL, Claimed, Instant, InstantState, Job, JobState, Overlap
from hermes_agent.work.cron.ending import QUIET, Endings, Result
from hermes_agent.work.cron.schedule import NEVER, SET_BACK, BadSchedule, plan

MOST_OUTPUT = 100_000
"""Bytes of a script's output that are read; the end of a longer one."""
RUNS = {".py": "python3", ".sh": "sh", ".bash": "bash", ".js": "node"}
LARGEST = 100_000
"""Bytes of a script."""
FORM = """f=$(mktemp) || exit 125
cat > "$f" <<'{mark}'
{text}
{mark}
chmod 700 "$f"
{run}
code=$?
rm -f "$f"
exit $code
"""
LAST_LINES = 2000
WAKE = "wakeAgent"


class Broken(HermesError):
    """A job that cannot run at all until a person changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a script said, and its exit code (None: nobody saw it end)."""

    text: str
    code: int | None

    @property
    def wakes(self) -> bool:
        """Whether the agent is to run: unless the last line is `{"wakeAgent": false}`."""
        last = self.text.strip().rpartition("\n")[2]
        with suppress(ValueError):
            found = json.loads(last)
            return not (isinstance(found, dict) and found.get(WAKE) is False)
        return True

    def failure(self, name: str) -> str:
        """Why it failed; empty where it did not."""
        if self.code == 0:
            return ""
        how = "ended, and nobody saw how" if self.code is None else f"ended with {self.code}"
        return f"The script {name} {how}. {self.text.strip()[-LAST_LINES:]}".strip()


def script_path(folder: Path, name: str) -> Path:
    """The file of a script. Raises `Broken` for one outside the folder, also by a link, or one that is not there."""
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):
        inside = False
    if not name or not inside:
        raise Broken(f"`{name}` is not in {folder}: scripts of jobs stand there.")
    if not path.is_file():
        raise Broken(f"There is no script {path}.")
    return path.resolve()


def command_of(folder: Path, name: str) -> str:
    """The command that runs a script. It holds the script's text: behind the wall, and on other machines, there is no
    home. Raises `Broken`."""
    path = script_path(folder, name)
    try:
        content = read_small(path, LARGEST)
        text = (content or b"").decode()
    except (HomeError, ValueError) as error:
        raise Broken(f"The script {path} cannot be run: it is not {LARGEST:,} bytes of text.") from error
    run = RUNS.get(path.suffix) or ("" if text.startswith("#!") else "sh")
    return FORM.format(text=text, mark=f"END_{sha256(text.encode()).hexdigest()[:16]}", run=f'{run} "$f"'.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """Runs scripts in a place, with a time limit in seconds."""

    place: Place
    folder: Path
    seconds: float

    async def run(self, name: str, instant: Instant, workdir: str, part: str = "") -> Output:
        """Run a script for an instant, or wait for the one that an earlier process started. Raises `HermesError`."""
        text = await asyncio.to_thread(command_of, self.folder, name)
        command = Command(text=text, folder=workdir, limit=self.seconds)
        exec_id = f"cron/{instant.job}-{instant.due}{part}"
        running = await begun(self.place, exec_id, command)
        ended = await running.wait()
        read = await end_of_output(running, MOST_OUTPUT)
        return Output(text=read.decode("utf-8", "replace"), code=ended.code)


log = logging.getLogger(__name__)
RECHECK = 5.0
"""Seconds after which what is under way is looked at again: its worker may have died."""
MOST_ATTEMPTS = 20
"""So often the program may die in an instant, mostly for no fault of it: what runs beside it dies too."""
GATE = "-gate"
SOURCE = "cron"
"""The source of the messages of instants."""
APOLOGY = "Something in this program broke; logs/hermes.log has the details."


class Dismissed(HermesError):
    """A job of somebody who may not use this agent any more."""


STOPPED_BY: Mapping[type[HermesError], JobState] = {Broken: JobState.BROKEN, Dismissed: JobState.PAUSED}
"""What becomes of the job whose instant failed so; any other stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """An instant that is about to start a session, with the output of its script (None: it has none)."""

    job: Job
    claimed: Claimed
    output: Output | None


class Sessions(Protocol):
    """What the system does for a job.

    - `check` raises `Dismissed` where its person may have no jobs;
    - `folder` is where it works;
    - `start` starts its session, in one commit with `CronInstants.begun`; it raises `Broken` where a skill or the like
      is gone, `HermesError` where it cannot start now;
    - `stop` stops a session's run;
    - `file` writes the result of an instant, once or again.
    """

    def check(self, job: Job) -> None: ...

    def folder(self, job: Job) -> str: ...

    async def start(self, ready: Ready) -> None: ...

    async def stop(self, session: str) -> None: ...

    async def file(self, job: Job | None, instant: Instant) -> None: ...


class Firing:
    """The source of a process's alarm for scheduled jobs; `most` may be under way at a time, in all processes."""

    def __init__(  # noqa: PLR0913  the parts of the system that firing needs
        self,
        *,
        store: Store,
        clock: Clock,
        endings: Endings,
        sessions: Sessions,
        scripts: Scripts,
        most: int,
        begin: Callable[[float], Awaitable[None]],
    ) -> None:
        self._store, self._clock, self._endings = store, clock, endings
        self._sessions, self._scripts, self._most, self._begin = sessions, scripts, most, begin
        self._since: float | None = None
        self._looked = self._last = 0.0
        self._tasks: dict[asyncio.Task[None], Lease] = {}

    async def next_due(self) -> float | None:
        """See `Source`."""
        now = self._clock.now()
        if self._since is None or now < self._last - SET_BACK:
            await self._begin(now + SET_BACK)
            self._since = now
        self._last = now
        ahead = await self._store.cron_instants.ahead(self._most)
        times = [each for each in (ahead.look_at, ahead.ready_at) if each is not None]
        times += [self._looked + RECHECK] if ahead.running else []
        times += [0.0] if ahead.unfiled else []
        return min(times, default=None)

    async def fire(self) -> None:
        """See `Source`."""
        self._looked = self._clock.now()
        await self._plan()
        await self._settle()
        while (claimed := await self._store.cron_instants.claim(self._most)) is not None:
            task = spawn(self._run(claimed), name=f"scheduled job {claimed.instant.id}")
            self._tasks[task] = claimed.lease
            task.add_done_callback(self._tasks.pop)
        for instant in await self._store.cron_instants.unfiled():
            await self._sessions.file(await self._store.cron_jobs.get(instant.job), instant)
            await self._store.cron_instants.filed(instant)

    async def close(self) -> None:
        """Leave what is under way to others: scripts go on, and whoever claims their instants finds them."""
        tasks = dict(self._tasks)
        await cancelled(tasks)
        for lease in tasks.values():
            await self._store.cron_instants.release(lease)

    async def _plan(self) -> None:
        last = ""
        while jobs := await self._store.cron_jobs.due(last):
            last = jobs[-1].id
            for job in jobs:
                try:
                    await self._plan_one(job)
                except (BadSchedule, ArithmeticError, OSError, ValueError) as error:  # No such zone, or no such time.
                    words = str(error) if isinstance(error, HermesError) else f"Its times cannot be computed: {error}."
                    now = self._clock.now()
                    said = await self._store.cron_instants.ask_for(Instant(job=job.id, due=int(now), ready_at=NEVER))
                    await self._end(said, Result(state=InstantState.FAILED, words=words, job_state=JobState.BROKEN))

    async def _plan_one(self, job: Job) -> None:
        waiting, now = await self._store.cron_jobs.waiting(job.id), self._clock.now()
        assert self._since is not None
        planned = await asyncio.to_thread(plan, job, waiting, now, self._since)
        if planned.done and await self._store.cron_instants.running(Instant(job=job.id, due=0)):
            planned = replace(planned, done=False)
        await self._store.write(lambda tx: self._endings.planned(tx, job, planned))

    async def _settle(self) -> None:
        """End the instants whose run is over and did not say so: it could not begin, or its session is gone."""
        for instant in await self._store.cron_instants.left():
            mail = await self._store.inbox.find(SOURCE, instant.source_id)
            ended = None if mail is not None and mail.state == Ending.REFUSED else await self._run_end(instant, mail)
            if ended is None:
                words = (mail.reason if mail else "") or "Its session is gone."
                await self._end(instant, Result(state=InstantState.FAILED, words=words))
                continue
            await self._store.write(partial(self._endings.run_ended, session=instant.session, ended=ended))

    async def _run_end(self, instant: Instant, mail: Mail | None) -> RunEnded | None:
        """The end of the run that took the message of an instant: a session may have runs of earlier ones."""
        events = [each.event for each in await self._store.history.entries(instant.session)]
        taken = (
            n for n, each in enumerate(events) if isinstance(each, MessageTaken) and mail and each.inbox == mail.id
        )
        return next((each for each in events[next(taken, 0) :] if isinstance(each, RunEnded)), None)

    async def _run(self, claimed: Claimed) -> None:
        """Take an instant to its session, or to its end."""
        instant = claimed.instant
        # Boundary: one job.
        try:
            result = await self._result(claimed)
        except (LostLease, StoreError) as error:
            log.warning("scheduled job %s is left to others: %s", instant.id, error)
            await self._store.cron_instants.release(claimed.lease, str(error), counts=True)
            return
        except HermesError as error:
            result = Result(state=InstantState.FAILED, words=str(error), job_state=STOPPED_BY.get(type(error)))
        except Exception:
            log.exception("scheduled job %s failed", instant.id)
            result = Result(state=InstantState.FAILED, words=APOLOGY)
        if result is not None:
            await self._end(instant, result, claimed.lease)

    async def _result(self, claimed: Claimed) -> Result | None:
        """What came of an instant; None where a session runs it from now on."""
        instant = claimed.instant
        job = await self._store.cron_jobs.get(instant.job)
        if job is None:
            return Result(state=InstantState.SKIPPED, why="removed")
        if instant.why != MANUAL and job.state is not JobState.ON:
            return Result(state=InstantState.SKIPPED, why=job.state.value)
        if instant.attempts > MOST_ATTEMPTS:
            raise HermesError("Given up: the program died in it again and again.")
        self._sessions.check(job)
        if await self._overlaps(job, instant):
            return Result(state=InstantState.SKIPPED, why="overlap")
        return await self._scripted(job, claimed)

    async def _overlaps(self, job: Job, instant: Instant) -> bool:
        """Whether an earlier instant of the job goes on, and this one yields; for a rule that says so it is stopped."""
        others = await self._store.cron_instants.running(instant)
        earlier = [each for each in others if each.due < instant.due]
        if job.plan.overlap is not Overlap.STOP:  # One that is tried again comes late: a later one may go on.
            return bool(others if instant.tries else earlier)
        for each in earlier:
            await self._end(each, Result(state=InstantState.FAILED, why="overlap", words="The next one stopped it."))
            if each.session:
                await self._sessions.stop(each.session)
        return False

    async def _scripted(self, job: Job, claimed: Claimed) -> Result | None:
        instant, made, output = claimed.instant, job.plan, None
        folder = self._sessions.folder(job)
        if made.gate:
            gate = await self._scripts.run(made.gate, instant, folder, GATE)
            if gate.code != 0 or not gate.wakes:
                return Result(state=InstantState.SKIPPED, why="gate", words=gate.text[-2000:])
        if made.script:
            output = await self._scripts.run(made.script, instant, folder)
            if failure := output.failure(made.script):
                raise HermesError(failure)
        if not made.agent:
            said = output.text.strip() if output else ""
            return Result(state=InstantState.RAN, words=said, why="" if said else QUIET)
        if output is not None and not output.wakes:
            return Result(state=InstantState.SKIPPED, why="gate", words=output.text[-2000:])
        await self._store.cron_instants.check(claimed.lease)
        await self._sessions.start(Ready(job=job, claimed=claimed, output=output))
        return None

    async def _end(self, instant: Instant, result: Result, lease: Lease | None = None) -> None:
        async def change(tx: Transaction) -> None:
            job = await self._store.cron_jobs.read(tx, instant.job)
            await self._endings.end(tx, instant, job, result, lease)

        await self._store.write(change)
