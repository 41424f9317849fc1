"""A disk that fills up while a run is under way."""

import os
import subprocess

import pytest

from hermes_agent.core.errors import DiskFull
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.workers import Timings
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, tool


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=False).returncode
    ):
        pytest.skip("a disk of our own can only be mounted by root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


async def test_a_full_disk_ends_the_run_visibly_and_loses_nothing_that_was_committed(small_disk):
    filler = small_disk / "filler"

    async def fill(_, __):
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 65536)
            except OSError:
                return "y" * 500_000

    look = tool("look")
    look.body = fill
    model = ScriptedModel(lambda heard: Say("Here.") if len(model.requests) > 1 else Call("look"))
    harness = Harness(small_disk, model, (look,), timings=Timings(sweep=0.05))
    async with harness.open():
        with pytest.raises(DiskFull, match="No room left on the disk"):
            await harness.say("Go", message_id="1")
        before = await harness.log()
        filler.unlink()
        look.body = tool("look", "blue").body

        assert [entry.event.kind for entry in before][:2] == ["run_started", "message_taken"]
        assert await harness.hermes.resume(harness.session)
        assert (await harness.ended(len(before))).text == "Here."
        assert (await harness.log())[: len(before)] == before
        assert (await harness.store.inbox.find("test", "1")).state == "answered"
