"""What a container is made with: everything dropped but what is named."""

from pathlib import Path

import pytest

from hermes_agent.sandbox.containers import Maker
from hermes_agent.sandbox.jail import Walls
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.settings import ContainerSettings


def arguments(folder: Path, settings: ContainerSettings | None = None, walls: Walls | None = None) -> str:
    settings, walls = settings or ContainerSettings(), walls or Walls()
    maker = Maker(program=["docker"], folder=folder, settings=settings, walls=walls, env={}, told={})
    return " ".join(maker._arguments("name", str(folder / "work")))


def test_everything_is_closed_at_first(tmp_path: Path):
    said = arguments(tmp_path)

    for closed in ("--cap-drop ALL", "no-new-privileges", "--read-only", "--network none", "--pids-limit 512"):
        assert closed in said
    assert "--cap-add" not in said


def test_what_is_named_is_open(tmp_path: Path):
    settings = ContainerSettings(capabilities=("NET_RAW",), arguments=("--gpus", "all"))

    said = arguments(tmp_path, settings, Walls(network=True, writable=("/data",)))

    for opened in ("--cap-add NET_RAW", "--network bridge", "-v /data:/data", "--gpus all"):
        assert opened in said


def test_what_is_hidden_in_the_workspace_is_covered(tmp_path: Path):
    (tmp_path / "work" / ".ssh").mkdir(parents=True)
    (tmp_path / "work" / ".netrc").touch()
    hidden = (str(tmp_path / "work" / ".ssh"), str(tmp_path / "work" / ".netrc"), "/etc/shadow")

    said = arguments(tmp_path, walls=Walls(hidden=hidden))

    assert f"-v {tmp_path}/empty:{tmp_path}/work/.ssh:ro" in said
    assert f"-v /dev/null:{tmp_path}/work/.netrc:ro" in said
    assert "shadow" not in said


def test_a_folder_that_no_container_can_be_shown_is_refused(tmp_path: Path):
    with pytest.raises(PlaceFailed, match="colon"):
        arguments(tmp_path, walls=Walls(writable=("/a:b",)))
