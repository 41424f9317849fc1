"""kill -9 in the middle of reviews: no half-written skill, no row without its file, no file without its row, and every
review comes to its end."""

import asyncio
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.host.paths import read_small
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.skills.format import read
from hermes_agent.store.learning.jobs import Job, JobKind, JobState
from hermes_agent.store.versions import Kind, VersionState
from tests.app.place import Place
from tests.learning.harness import Script, learning_place, looks, note, skill

REVIEWER = Path(__file__).parent / "programs" / "reviewer.py"
ROOT = Path(__file__).parents[2]
LONGEST = 0.6
"""Seconds after its begin within which a reviewer is killed."""


async def killed(home: Path, after: float, when: Callable[[], bool] = lambda: False) -> None:
    """Work on the jobs of a home in a process that is killed after so many seconds, or at once `when` it is so."""
    environment = {"PATH": os.defpath, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(REVIEWER), str(home), env=environment, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        async with asyncio.timeout(after):
            while process.returncode is None and not when():
                await asyncio.sleep(0.001)
    except TimeoutError:
        pass
    if process.returncode is None:
        process.kill()
    await process.communicate()


async def in_line(here: Place, number: int) -> None:
    last = await here.runtime.store.history.last_number(here.record.id)
    job = Job(
        id=f"job{number}",
        kind=JobKind.REVIEW,
        session=here.record.id,
        principal=here.runtime.owner.key,
        what="skills+memory",
        first=1,
        last=last,
        created=float(number),
    )
    await here.runtime.store.write(lambda tx: here.runtime.store.learning.queue(tx, job))


def lessons(script: Script):
    def answer(heard: Heard):
        began = max(n for n, m in enumerate(heard.messages) if "[Review of" in m.text)
        spoken = sum(message.role == "assistant" for message in heard.messages[began:])
        number = len(script.reviews)
        if spoken == 0:
            body = "\n".join(f"Step {step} of {number}." for step in range(40))
            return [skill(f"way-{number}", body), note(f"Lesson {number}."), skill(f"other-{number}", body)]
        return Say(f"Kept.\noverlap: other-{number - 1}, way-{number - 1}")

    return answer


@pytest.mark.timeout(1200)
@pytest.mark.slow
async def test_reviews_that_are_killed_leave_files_and_ledger_in_step(tmp_path: Path, request: pytest.FixtureRequest):
    kills = 100 if request.config.getoption("--full", default=False) else 12
    chance = random.Random(7)
    script = Script(looks(3))
    script.clean = lessons(script)
    more = "memory:\n  memory_char_limit: 100000\nskills:\n  creation_nudge_interval: 0\n"
    async with learning_place(tmp_path, script, more=more) as here:
        await here.say("Look around")
        for number in range(kills):
            await in_line(here, number)
            await killed(tmp_path / "home", chance.uniform(0.05, LONGEST))
        await here.runtime.learner.run()
        jobs = await here.runtime.store.learning.list(limit=1_000)
        await in_step(here, tmp_path / "home")
        overlaps = await here.runtime.store.learning.overlaps()

    assert len(overlaps) == sum(job.state is JobState.DONE for job in jobs)  # One each, neither lost nor doubled.
    assert any(job.attempts > 1 for job in jobs)  # Some were killed in their middle.
    assert {job.state for job in jobs} <= {JobState.DONE, JobState.FAILED}
    assert sum(job.state is JobState.DONE for job in jobs) >= kills / 2  # One that was killed too often is given up.


async def in_step(here: Place, home: Path) -> None:
    """Each file is what its newest version says, and whole; what a kill left intended is settled by the next look."""
    store = here.runtime.store
    await here.runtime.snapshots.now.notes.notice(["MEMORY.md"])
    versions = here.runtime.skills.writer(store).versions
    names = {item.partition("/")[0] for item in await store.versions.items(Kind.SKILL)}
    names |= {file.parent.name for file in (home / "skills").rglob("SKILL.md")}
    for name in names:
        await versions.notice(name, home / "skills" / name)
        latest = await store.versions.latest(Kind.SKILL, f"{name}/SKILL.md")
        content = read_small(home / "skills" / name / "SKILL.md", 1 << 20)
        assert latest is None or latest.state is VersionState.DONE
        assert content == (latest.change.after if latest else None)
        assert latest is None or latest.change.author.value == "background"
        if content is not None:
            read(content.decode(), name)
    noted = await store.versions.latest(Kind.MEMORY, "MEMORY.md")
    assert (noted.change.after if noted else None) == read_small(home / "memories/MEMORY.md", 1 << 20)
