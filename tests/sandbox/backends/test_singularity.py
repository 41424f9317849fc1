"""Instances: made anew once, and told of. The command is a double, because Debian has no apptainer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.singularity import build
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.sandbox.settings import SingularitySettings
from hermes_agent.sandbox.walls import Walls
from tests.contracts.places import singularity


def stop_instances(folder: Path) -> None:
    for instance in folder.glob("hermes-*"):
        instance.unlink()


async def test_an_instance_that_stopped_is_started_anew_and_told_of_once(tmp_path: Path) -> None:
    place = singularity(tmp_path)
    command = Command(text="echo hi", folder=str(tmp_path))
    await (await place.start("g/a", command)).wait()
    for said in ("made anew. Lost", "stopped again"):
        stop_instances(tmp_path)

        with pytest.raises(PlaceFailed, match=said):
            await place.start("g/b", command)


def test_without_an_image_or_a_program_there_is_no_place(tmp_path: Path) -> None:
    with pytest.raises(PlaceFailed, match="No image is named"):
        build(tmp_path, SingularitySettings(), Walls(), {}, {})
