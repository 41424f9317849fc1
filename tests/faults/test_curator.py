"""kill -9 in the middle of passes: no half-written skill, no row without its file, no file without its row, nothing
lost on the way, and every pass comes to its end."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.host.paths import read_small
from hermes_agent.learning.curator.curating import What
from hermes_agent.learning.curator.plan import PLAN, RUN
from hermes_agent.learning.curator.tools import OPENING
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.skills.depot import hash_of_folder
from hermes_agent.skills.format import read
from hermes_agent.skills.writing import ARCHIVE
from hermes_agent.store.learning.jobs import JobKind, JobState
from hermes_agent.store.versions import Author, By, Kind, VersionState
from tests.faults.test_reviews import killed
from tests.learning.curator.harness import Kept, Upkeep, join, kept_home

BY = By(author=Author.BACKGROUND)
LONGEST = 1.0
"""Seconds after its begin within which a pass is killed."""
GROUP = re.compile(r"^- ([\w-]+(?:, [\w-]+)+)$", re.MULTILINE)


class Joiner(Upkeep):
    """A model that joins everything that overlaps."""

    def __call__(self, heard: Heard):
        asked = next((m.text for m in heard.messages if OPENING in m.text), "")
        if not asked or heard.messages[-1].role == "tool":
            return Say("Done.")
        groups = [group.split(", ") for group in GROUP.findall(asked)]
        return [join(into, *others[:8], keep=others[:8]) for into, *others in groups] or Say("Nothing.")


async def more_skills(kept: Kept, number: int) -> None:
    """Two that overlap and one that nobody used."""
    body = "\n".join(f"{step}. Step {step} of the work number {number}, with care{number}." for step in range(30))
    for sort in ("one", "two"):
        await kept.make(f"work-{number}-{sort}", body)
        await kept.writer().write_file(f"work-{number}-{sort}", "references/a.md", body.encode(), BY)
    await kept.make(f"old-{number}", f"Long ago {number}.", days=-100)


@pytest.mark.timeout(1200)
@pytest.mark.slow
async def test_passes_that_are_killed_leave_files_and_ledger_in_step(tmp_path: Path, request: pytest.FixtureRequest):
    kills = 100 if request.config.getoption("--full", default=False) else 10
    chance, caught = random.Random(11), 0
    async with kept_home(tmp_path, Joiner()) as kept:
        await kept.curating.run()
        for number in range(kills):
            await more_skills(kept, number)
            await kept.curating._queue([What.ASKED, What.STATES, What.UPKEEP])
            await killed(tmp_path / "home", *moment(tmp_path / "home", chance.uniform(0.05, LONGEST), number))
            caught += half_done(tmp_path / "home")
        await kept.here.runtime.learner.run()
        jobs = await kept.here.runtime.store.learning.list(JobKind.CURATOR, limit=1_000)
        runs = await kept.curating.runs()
        await in_step(kept)
        await nothing_is_lost(kept, kills)

    assert any(job.attempts > 1 for job in jobs)  # Some were killed in their middle,
    assert caught  # and some of these while they changed files.
    assert {job.state for job in jobs} <= {JobState.DONE, JobState.FAILED}
    done = [job for job in jobs if job.state is JobState.DONE]
    assert {job.id for job in done} <= {run.job for run in runs}
    assert half_done(tmp_path / "home") == 0  # Also what was given up is told.
    assert len(done) >= kills / 2  # One that was killed too often is given up.
    assert all(each.versions for run in runs for each in run.changes if each.state == "done")


def moment(home: Path, after: float, number: int) -> tuple[float, Callable[[], bool]]:
    """When to kill: after so long, or (each second time) as soon as one more pass has planned, however fast that is."""
    before = half_done(home)
    return (10 * LONGEST, lambda: half_done(home) > before) if number % 2 else (after, lambda: False)


def half_done(home: Path) -> int:
    """How many passes planned something and did not end."""
    folders = [each for each in (home / "logs/curator").iterdir() if (each / PLAN).exists()]
    return sum(not (each / RUN).exists() for each in folders)


async def in_step(kept: Kept) -> None:
    """Each file of each skill is what its newest version says, and whole; nobody's hand is suspected."""
    store, home = kept.here.runtime.store, kept.here.runtime.skills.home
    writer = kept.curating.writer
    names = sorted({item.partition("/")[0] for item in await store.versions.items(Kind.SKILL)})
    await writer.mend(names)
    for item in await store.versions.items(Kind.SKILL):
        latest = await store.versions.latest(Kind.SKILL, item)
        content = read_small(home / item)
        assert latest is not None, item
        assert (content, latest.state) == (latest.change.after, VersionState.DONE), item
        assert latest.change.author in {"background", "curator"}, item
        if content is not None and item.endswith("/SKILL.md"):
            read(content.decode(), item.partition("/")[0])


async def nothing_is_lost(kept: Kept, kills: int) -> None:
    """Every skill stands live or in the archive, whole; what was absorbed is in what absorbed it."""
    home = kept.here.runtime.skills.home
    for number in range(kills):
        for name in (f"work-{number}-one", f"work-{number}-two", f"old-{number}"):
            live, aside = home / name, home / ARCHIVE / name
            assert bool(hash_of_folder(live)) != bool(hash_of_folder(aside)), name
            assert (live / "SKILL.md").is_file() or (aside / "SKILL.md").is_file()
