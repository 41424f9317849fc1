"""A bound on processes is a control group where the machine has one, and nothing where it has none."""

from pathlib import Path

from hermes_agent.sandbox.cgroup import processes_at_most, thread_in


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


def test_a_thread_begins_in_the_group_where_threads_may(tmp_path: Path):
    procs = tmp_path / "cgroup.procs"
    assert thread_in("") is None
    assert thread_in(str(procs)) is None

    (tmp_path / "tasks").touch()
    thread = thread_in(str(procs))

    assert thread is not None
    assert (tmp_path / "tasks").read_text() == "0"
    thread.shutdown()


def test_a_group_that_takes_no_threads_is_none(tmp_path: Path):
    (tmp_path / "tasks").mkdir()

    assert thread_in(str(tmp_path / "cgroup.procs")) is None
