"""No command leaves its wall by a socket, a link that it planted, another's processes, or what fills the machine."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.sandbox.seccomp import is_supported
from hermes_agent.sandbox.walls import SYSTEM, Walls
from hermes_agent.tools.files.writing import ABSENT, Writer

SECRET = "k-4711-never-shown"


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    try:
        jail_of(request.param, Walls())
    except CannotJail as reason:
        pytest.skip(f"no {request.param} here: {reason}")
    return str(request.param)


class Walled:
    """Commands of a session in `person/work`, beside a letter that no list names."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.person, self.work = kind, folder / "person", folder / "person/work"
        self.letters = self.person / "letters"
        self.work.mkdir(parents=True)
        self.letters.mkdir()
        (self.letters / "letter").write_text(SECRET)
        self.places: list[LocalPlace] = []
        self.use()

    def use(self, *, readable: tuple[str, ...] = (), writable: tuple[str, ...] = (), session_mb: int = 0) -> None:
        walls = Walls(
            readable=(*SYSTEM, sys.prefix, sys.base_prefix, *readable),
            writable=writable,
            closed=(f"{self.person}/.hermes",),
            person=str(self.person),
            session_mb=session_mb,
        )
        env = {"PATH": os.environ["PATH"], "HOME": str(self.person)}
        records = self.person / ".hermes" / str(len(self.places))
        self.places.append(
            LocalPlace(folder=records, env=env, jail=partial(jail_of, self.kind, walls), network=Network())
        )
        self.count = 0

    async def __call__(self, text: str, folder: Path | None = None) -> str:
        self.count += 1
        command = Command(text=text, folder=str(folder or self.work))
        running = await self.places[-1].start(f"g/{self.count}", command)
        await running.wait()
        return (await running.read(0, 1 << 16)).decode(errors="replace")

    async def python(self, text: str) -> str:
        (self.work / "program.py").write_text(text)
        return await self(f"{sys.executable} -IS program.py")


@pytest.fixture
async def walled(kind: str, tmp_path: Path) -> AsyncIterator[Walled]:
    made = Walled(kind, tmp_path)
    yield made
    for place in made.places:
        await place.close()


PAIR = """
import socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        one.sendto(b"out", {})
    except OSError as error:
        print(error)
print(len(socket.socketpair()))
"""


@pytest.mark.skipif(not is_supported(), reason="this kernel hands no connection over")
@pytest.mark.parametrize("name", ["\0hermes-ways-out", "log"])
async def test_half_of_a_pair_of_sockets_sends_to_nobody_else(walled: Walled, name: str) -> None:
    address = name if name.startswith("\0") else str(walled.work / name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outside:
        outside.bind(address)
        outside.setblocking(False)

        output = await walled.python(PAIR.format(repr(address)))

        with pytest.raises(BlockingIOError):
            outside.recv(10)
    assert output.splitlines()[-1] == "2", output


async def test_nothing_that_is_not_bounded_can_be_filled(walled: Walled) -> None:
    output = await walled(
        "for folder in / /home /opt /srv; do mkdir -p $folder; echo x >$folder/x && echo in $folder; done; :"
    )

    assert "in " not in output


@pytest.mark.parametrize("name", ["vendor", "deep/vendor"])
@pytest.mark.parametrize("access", ["readable", "writable"])
async def test_a_link_in_the_place_of_what_a_list_names_leads_nowhere(walled: Walled, access: str, name: str) -> None:
    named = walled.work / name
    walled.use(**{access: (str(named),)})
    up = "../" * (name.count("/") + 1)
    plant = f"mkdir -p ~/letters {named.parent}; ln -s {up}letters {named}"

    for first in (plant, f"mv {walled.work}/deep {walled.work}/old; {plant}"):
        await walled(first)
        output = await walled(f"cat ~/letters/* {named}/* {walled.letters}/*; echo x >{walled.letters}/new; :")
        assert SECRET not in output
        assert not (walled.letters / "new").exists()


@pytest.mark.parametrize("name", ["vendor", "deep/vendor"])
async def test_a_named_folder_in_the_workspace_cannot_be_exchanged(walled: Walled, name: str) -> None:
    named = walled.work / name
    named.mkdir(parents=True)
    walled.use(readable=(str(named),))

    await walled(
        f"mkdir -p ~/letters; mv {name.partition('/')[0]} old; mkdir -p {Path(name).parent}; ln -s ~/letters {name}"
    )
    output = await walled(f"cat ~/letters/* {named}/*")

    assert SECRET not in output
    assert named.is_dir()
    assert not named.is_symlink()


async def test_a_workspace_in_another_one_cannot_be_exchanged_for_a_link(walled: Walled) -> None:
    inner = walled.work / "inner"
    inner.mkdir()
    assert "begun" in await walled("echo begun", inner)

    await walled("mv inner old; mkdir ~/letters; ln -s ../letters inner")

    try:
        output = await walled("cat * ~/letters/*; echo x >new; :", inner)
    except PlaceFailed as error:
        output = str(error)
    assert SECRET not in output
    assert not (walled.letters / "new").exists()


LIMIT = "import resource as r; r.prlimit({}, r.RLIMIT_NOFILE, (64, 64))"


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


async def test_the_limits_of_another_process_are_not_changed(walled: Walled) -> None:
    with sleeper() as outside:
        try:
            before = resource.prlimit(outside.pid, resource.RLIMIT_NOFILE)

            output = await walled.python(LIMIT.format(outside.pid))
            own = await walled.python(f"{LIMIT.format(0)}; print(r.getrlimit(r.RLIMIT_NOFILE))")

            assert resource.prlimit(outside.pid, resource.RLIMIT_NOFILE) == before
        finally:
            outside.kill()
    assert "Error" in output
    assert own == "(64, 64)\n"


async def test_shared_memory_of_others_is_neither_read_nor_removed(walled: Walled) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    memory = libc.shmget(0, 4096, 0o1600)  # IPC_PRIVATE, IPC_CREAT
    assert memory >= 0
    try:
        text = f"import ctypes; c = ctypes.CDLL(None); print(c.shmctl({memory}, 0, 0), c.shmget(0, 4096, 0o1600) >= 0)"
        said = (await walled.python(text)).split()
        facts = ctypes.create_string_buffer(256)
        assert libc.shmctl(memory, 2, facts) == 0, said  # IPC_STAT
        assert said[0] == "-1"
    finally:
        libc.shmctl(memory, 0, 0)


def test_no_folder_is_made_where_a_link_leads_that_came_since(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/in").symlink_to(tmp_path / "outside")
    located = tmp_path / "work/in/a/b/file"

    with pytest.raises(ToolError):
        Writer().swap(located, "in/a/b/file", b"x", over=ABSENT)
    Writer().swap(tmp_path / "work/new/a/file", "new/a/file", b"x", over=ABSENT)

    assert list((tmp_path / "outside").iterdir()) == []
    assert (tmp_path / "work/new/a/file").read_bytes() == b"x"


FILL = "for n in $(seq 40); do head -c 1M /dev/zero >{}/$n; sleep 0.1; done; echo filled"


async def test_what_fills_the_session_s_own_folders_is_ended_and_the_next_command_may_delete_it(walled: Walled) -> None:
    walled.use(session_mb=4)

    for folder in ("$TMPDIR", "$HOME"):
        output = await walled(FILL.format(folder))
        assert "/tmp and ~ of its session hold " in output
        assert "filled" not in output
        assert await walled(f"cd {folder} && rm [0-9]* && echo deleted") == "deleted\n"
    assert "filled" in await walled("head -c 9M /dev/zero >here; sleep 0.4; echo filled")


@pytest.mark.parametrize("above", [False, True], ids=["the home", "what holds it"])
async def test_a_mount_that_appears_in_the_workspace_shows_nothing_that_is_closed(walled: Walled, above: bool) -> None:
    home, mount = walled.person / ".hermes", walled.work / "mount"
    home.mkdir()
    (home / ".env").write_text(SECRET)
    part = mount / ".hermes" if above else mount
    mount.mkdir()
    assert await walled("ls mount") == ""
    if await asyncio.to_thread(mounts, mount, walled.person if above else home):
        pytest.skip("this machine does not let us mount")
    try:
        said = await walled(f"cat {part}/.env mount/*/.env; echo x >{part}/.env; :")
        with pytest.raises(PlaceFailed, match="is closed to commands"):
            await walled("cat .env", part)
    finally:
        assert await asyncio.to_thread(mounts, mount) == 0

    assert SECRET not in said
    assert (home / ".env").read_text() == SECRET


def mounts(where: Path, what: Path | None = None) -> int:
    words = ["mount", "--bind", what, where] if what else ["umount", "-l", where]
    return subprocess.run(words, check=False).returncode
