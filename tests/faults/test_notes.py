"""Processes write the same notes, are killed while they do, and a person edits in between: nothing is lost or torn."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hermes_agent.core.clock import RandomIds
from hermes_agent.host.paths import Home
from hermes_agent.memory.entries import Operation, entries_of
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.settings import Target
from hermes_agent.store.database import open_store
from hermes_agent.store.versions import Author, By, Kind, VersionState
from hermes_agent.testing.clock import FakeClock
from tests.faults.programs.notes_writer import OWNER, ROOMY

WRITER = Path(__file__).parent / "programs" / "notes_writer.py"
ROOT = Path(__file__).parents[2]
KILLS = 8


async def writer(home: Path, name: str, count: int) -> asyncio.subprocess.Process:
    environment = {"PATH": os.defpath, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    return await asyncio.create_subprocess_exec(
        sys.executable, str(WRITER), str(home), name, str(count), env=environment, stdout=asyncio.subprocess.PIPE
    )


async def append_by_hand(path: Path, writers: list[asyncio.subprocess.Process]) -> list[str]:
    """What a person does who appends entries in place, as long as anybody writes; the entries."""
    appended = []
    while any(each.returncode is None for each in writers):
        appended.append(f"by hand {len(appended)}")
        with path.open("a") as file:
            file.write(f"§\n{appended[-1]}\n")
        await asyncio.sleep(0.25)
    return appended


async def chain_of(home: Path) -> tuple[list[str], list[str]]:
    """The entries of the file, and the authors of all versions; each version begins where the one before ended."""
    store = await open_store(home / "hermes.db")
    try:
        place = Home(root=home, base=home)
        notes = Notes(home=place, store=store, clock=FakeClock(), ids=RandomIds(), settings=ROOMY)
        await notes.notice(["MEMORY.md"])
        versions = (await store.versions.list(Kind.MEMORY, "MEMORY.md", limit=10_000))[::-1]
    finally:
        await store.close()
    content = None
    for version in versions:
        assert version.change.before == content
        assert version.state is VersionState.DONE
        content = version.change.after
    assert (home / "memories/MEMORY.md").read_bytes() == content
    assert content is not None
    return entries_of(content.decode()), [version.change.author.value for version in versions]


@pytest.mark.timeout(300)  # with --full it is 1,000 writes each
@pytest.mark.slow
async def test_two_processes_and_a_person_write_and_nothing_is_lost(tmp_path: Path, request: pytest.FixtureRequest):
    count = 1_000 if request.config.getoption("--full", default=False) else 100
    home = tmp_path / "home"
    Home(root=home, base=home).ensure()
    writers = [await writer(home, name, count) for name in ("a", "b")]
    out = writers[0].stdout
    assert out is not None
    await out.readline()

    appending = asyncio.create_task(append_by_hand(home / "memories/MEMORY.md", writers))
    for each in writers:
        await each.communicate()

    entries, authors = await chain_of(home)
    by_hand = await appending
    assert sorted(entries) == sorted([*by_hand, *(f"{name} {number}" for name in "ab" for number in range(count))])
    assert 1 <= authors.count("found") <= len(by_hand)


@pytest.mark.slow
async def test_a_writer_that_is_killed_leaves_a_whole_file_and_a_true_ledger(tmp_path: Path):
    home = tmp_path / "home"
    Home(root=home, base=home).ensure()
    done: list[str] = []
    for number in range(KILLS):
        child = await writer(home, f"k{number}", 1_000)
        assert child.stdout is not None
        done += [(await child.stdout.readline()).decode().strip() for _ in range(3 + number)]
        child.kill()
        rest, _ = await child.communicate()
        done += rest.decode().splitlines()

    entries, authors = await chain_of(home)
    assert set(done) <= set(entries)
    assert len(entries) - len(done) <= KILLS
    assert len(set(entries)) == len(entries)
    assert set(authors) == {"foreground"}


async def test_a_change_that_was_cut_off_is_made_again_once(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path).ensure()
    by = By(author=Author.FOREGROUND, principal="cli:ann", key="s-call_1")
    operations = [Operation(action="add", content="one")]

    for _ in range(2):
        store = await open_store(tmp_path / "hermes.db")
        notes = Notes(home=home, store=store, clock=FakeClock(), ids=RandomIds(), settings=ROOMY)
        await notes.change(OWNER, Target.MEMORY, operations, by)
        await store.close()

    assert (tmp_path / "memories/MEMORY.md").read_text() == "one\n"
