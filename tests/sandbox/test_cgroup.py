"""A bound on processes is a control group where the machine has one, and nothing where it has none."""

from pathlib import Path

from hermes_agent.sandbox.cgroup import processes_at_most


def test_without_control_groups_there_is_no_bound(tmp_path: Path):
    assert processes_at_most(100, tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


def test_the_bound_is_written_where_the_controllers_stand(tmp_path: Path):
    for version, folder in (("1", tmp_path / "one" / "pids"), ("2", tmp_path / "two")):
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").touch()

        procs = processes_at_most(100, folder.parent if version == "1" else folder)

        assert procs == str(folder / "hermes-jail-100" / "cgroup.procs")
        assert (folder / "hermes-jail-100" / "pids.max").read_text() == "100\n"
