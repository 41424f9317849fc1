"""What a wall gets that it cannot use, by rows: a sentence each, and nothing that is closed is read or written."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.core.dataclass import dataclass
from hermes_agent.providers.demo.script import Call
from tests.journeys.machine import Machine, machine

SECRET = "k-4711-never-shown"
ELSEWHERE = "(the home of Hermes, or a store of credentials): work elsewhere."
MANY = ", ".join(f"/data/{number}" for number in range(10_000))
LINK = Call("terminal", {"command": "ln -s ../person/letters link && ls link/"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`says` is what the model is told of the calls, in their order, or the person where there is no run. `{0}` is the
    folder of all."""

    says: tuple[str, ...]
    terminal: str = "jail: auto"
    lacks: tuple[str, ...] = ()
    folder: str = "{0}/work"
    calls: tuple[Call, ...] = (Call("terminal", {"command": "touch made; cat .env .ssh/id"}),)


def reads(*paths: str) -> tuple[Call, ...]:
    return tuple(Call("read_file", {"path": path}) for path in paths)


ROWS = {
    "no bubblewrap": Row(
        terminal="jail: bubblewrap", lacks=("bwrap",), says=("`bwrap` is not installed (apt install bubblewrap).",)
    ),
    "no Landlock": Row(terminal="jail: landlock", lacks=("landlock",), says=("The kernel has no Landlock.",)),
    "neither": Row(terminal="jail: any", lacks=("bwrap", "landlock"), says=("Commands cannot be jailed here",)),
    "neither, and nobody to ask": Row(lacks=("bwrap", "landlock"), says=("no wall can be had here to hold what it",)),
    "the whole machine as workspace": Row(folder="/", says=("/ holds the system: work elsewhere.",)),
    "the home of Hermes as workspace": Row(folder="{0}/home", says=(f"home is closed to commands {ELSEWHERE}",)),
    "a folder in the home of Hermes": Row(folder="{0}/home/cache", says=(f"cache is closed to commands {ELSEWHERE}",)),
    "a credential folder as workspace": Row(folder="{0}/person/.ssh", says=(f"is closed to commands {ELSEWHERE}",)),
    "$HOME as workspace, with credentials in it": Row(
        folder="{0}/person",
        calls=(Call("terminal", {"command": "cat .ssh/id; cat .aws/credentials"}), *reads(".ssh/id", "../home/.env")),
        says=("[exit 1", "it may hold credentials, which tools never see", "it is in the home of Hermes"),
    ),
    "a link out of the workspace that was made in the run": Row(
        calls=(LINK, *reads("link/letter"), Call("write_file", {"path": "link/new", "content": "x"})),
        says=(
            "[exit 2",
            "It needs a person's approval (it reads outside the workspace ({0}/person/letters/letter))",
            "It needs a person's approval (it writes outside the workspace ({0}/person/letters/new))",
        ),
    ),
    "10,000 allowed paths": Row(
        terminal=f"jail: bubblewrap, writable: [{MANY}]", says=("`bwrap` can show 300 folders and no more: name what",)
    ),
    "a rule that allows everything": Row(
        terminal="writable: [/]", says=("`terminal.writable` names /, which holds the system: name folders in it.",)
    ),
    "a rule that allows a store of credentials": Row(
        terminal="readable: [~/.ssh]", says=("is closed to commands: take it out of `terminal.readable`",)
    ),
    "a rule that allows the home of Hermes": Row(
        terminal="writable: [{0}/home/skills]", says=("is closed to commands: take it out of `terminal.readable`",)
    ),
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Machine]:
    """A machine with a person's secrets on it."""
    with machine(tmp_path) as made:
        names = ".ssh/id", ".aws/credentials", "letters/letter", "../home/skills/x", "../home/.env"
        for name in (f"person/{each}" for each in names):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"KEY={SECRET}\n")
        (tmp_path / "home/.env").chmod(0o600)
        (tmp_path / "home/cache").mkdir(exist_ok=True)
        made.lacks = ()
        yield made


@pytest.mark.parametrize("name", ROWS)
def test_what_a_wall_cannot_use_is_a_sentence_and_opens_nothing(place: Machine, tmp_path: Path, name: str) -> None:
    row = ROWS[name]
    place.configure(f"terminal: {{{row.terminal.replace('{0}', str(tmp_path))}}}\n")
    place.calls[:], place.lacks = row.calls, row.lacks

    said = place.hermes("-z", "Hi", folder=Path(row.folder.format(tmp_path)), HOME=str(tmp_path / "person"))

    told = place.results() if place.server.asked else [said.err]
    for words, result in zip(row.says, told, strict=True):
        assert words.format(tmp_path) in result, told
    assert SECRET not in str((told, said))
    assert not (tmp_path / "person/letters/new").exists()
    assert not any((Path(row.folder.format(tmp_path)) / each).exists() for each in ("made", "new"))


@pytest.mark.parametrize("jail", ["bubblewrap", "landlock"])
def test_a_kernel_that_hands_no_calls_over_leaves_commands_without_network(place: Machine, jail: str) -> None:
    place.configure(f"terminal: {{jail: {jail}}}\n")
    place.lacks = ("listener",)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        (place.work / "talk.py").write_text(f"import socket\nsocket.create_connection(('127.0.0.1', {port}))\n")
        place.calls[:] = [Call("terminal", {"command": f"touch made; {sys.executable} talk.py"})]

        said, doctor = place.hermes("-z", "Hi"), place.hermes("doctor", "--offline")

        with pytest.raises(BlockingIOError):
            server.accept()
    assert said.code == 0, said
    assert "[exit 1" in place.results()[0]
    assert (place.work / "made").exists()
    assert f"jailed by {jail}, with no network (the kernel lets nobody watch connections)" in doctor.out


MOUNTS = {
    "a file system in memory": ("mount", "mount -t tmpfs tmpfs {0}/work"),
    "an overlay": (
        "mount",
        "mount -t tmpfs tmpfs {0}/person/letters && cd {0}/person/letters && mkdir up tmp"
        " && mount -t overlay -o lowerdir={0}/work,upperdir=$PWD/up,workdir=$PWD/tmp overlay {0}/work",
    ),
    "FUSE": ("bindfs", "bindfs {0}/person/letters {0}/work"),
    "NFS": (
        "exportfs",
        "exportfs -o rw,no_root_squash,fsid=1 127.0.0.1:{0}/person/letters"
        " && mount -t nfs -o nolock 127.0.0.1:{0}/person/letters {0}/work",
    ),
}


@pytest.mark.parametrize("jail", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("kind", MOUNTS)
def test_a_workspace_on_another_file_system_is_one_like_any_other(
    place: Machine, tmp_path: Path, kind: str, jail: str
) -> None:
    needs, mount = MOUNTS[kind]
    if not shutil.which(needs):
        pytest.skip(f"no {kind} here: {needs} is not installed")
    ready = f"mkdir {tmp_path}/x && {mount.format(tmp_path)} || exit 77; cd {tmp_path}/work || exit 77"
    before = ["unshare", "-m", "sh", "-c", f'{ready}; exec "$0" "$@"']
    place.configure(f"terminal: {{jail: {jail}}}\n")
    place.calls[:] = [
        Call("terminal", {"command": f"touch made && ls; cat {tmp_path}/person/letters/letter"}),
        Call("write_file", {"path": "own.txt", "content": "mine"}),
        Call("terminal", {"command": "cat own.txt"}),
    ]

    said = place.hermes("-z", "Hi", before=before)

    if said.code in (1, 77) and not place.server.asked:
        pytest.skip(f"no {kind} here: {said.err}")
    made, written, read = place.results()
    assert made.startswith("made\n"), made
    assert "Created own.txt" in written
    assert read.startswith("mine\n"), read
    assert SECRET not in str(place.results())
