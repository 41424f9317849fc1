"""What bwrap is told: parents before what is in them, and what is hidden stays hidden."""

from pathlib import Path

from hermes_agent.sandbox.bubblewrap import Bubblewrap, processes_at_most, thread_in
from hermes_agent.sandbox.jail import Cell
from hermes_agent.sandbox.walls import Walls


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


def arguments(walls: Walls, cell: Cell | None = None) -> str:
    return " ".join(Bubblewrap("bwrap", walls).arguments(cell))


def test_a_hidden_folder_in_the_workspace_is_hidden_after_it_is_opened(tmp_path: Path):
    secret = tmp_path / "work" / ".ssh"
    secret.mkdir(parents=True)
    cell = Cell(folder=tmp_path / "record", files=(), kept=None, workspace=str(tmp_path / "work"))

    said = arguments(Walls(closed=(str(secret),)), cell)

    assert said.index(f"--bind {tmp_path}/work {tmp_path}/work") < said.index(f"--tmpfs {secret}")


def test_a_workspace_in_a_hidden_folder_is_open(tmp_path: Path):
    work = tmp_path / "home" / "work"
    work.mkdir(parents=True)
    cell = Cell(folder=tmp_path / "record", files=(), kept=None, workspace=str(work))

    said = arguments(Walls(closed=(str(tmp_path / "home"),)), cell)

    assert said.index(f"--tmpfs {tmp_path}/home") < said.index(f"--bind {work} {work}")


def test_what_is_readable_in_a_hidden_folder_comes_after_it(tmp_path: Path):
    (tmp_path / "skills").mkdir()
    said = arguments(Walls(closed=(str(tmp_path),), readable=(str(tmp_path / "skills"),)))

    assert said.index(f"--tmpfs {tmp_path}") < said.index(f"--ro-bind {tmp_path}/skills {tmp_path}/skills")


def test_a_folder_that_is_both_is_hidden(tmp_path: Path):
    said = arguments(Walls(closed=(str(tmp_path),), writable=(str(tmp_path),)))

    assert f"--tmpfs {tmp_path}" in said
    assert f"--bind {tmp_path}" not in said


def test_a_hidden_file_is_empty_and_what_is_not_there_needs_nothing(tmp_path: Path):
    (tmp_path / "key").touch()

    said = arguments(Walls(closed=(str(tmp_path / "key"), str(tmp_path / "gone")), writable=("/no/such",)))

    assert f"--ro-bind /dev/null {tmp_path}/key" in said
    assert "gone" not in said
    assert "/no/such" not in said


def test_the_network_is_closed_unless_it_is_allowed():
    assert "--unshare-net" in arguments(Walls())
    assert "--unshare-net" not in arguments(Walls(network=True))
