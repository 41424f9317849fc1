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


async def test_why_a_container_could_not_be_made_is_told_without_dockers_pointer_to_its_help(tmp_path: Path):
    said, program = "Cannot connect to the Docker daemon", tmp_path / "docker"
    program.write_text(f"""#!/bin/sh
[ $1 = run ] || exit 0
cat >&2 <<'SAID'
docker: {said}

Run 'docker run --help' for more information
SAID
exit 125
""")
    program.chmod(0o700)
    settings, walls = ContainerSettings(), Walls()
    maker = Maker(program=[str(program)], folder=tmp_path, settings=settings, walls=walls, env={}, told={})

    with pytest.raises(PlaceFailed, match=f"could not be made: docker: {said}$"):
        await maker.make("name", str(tmp_path / "work"))
