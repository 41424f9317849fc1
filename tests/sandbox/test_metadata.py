"""Under Landlock, modes, owners, times and attributes change where a command may write and nowhere else."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.metadata import CALLS
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import Command
from hermes_agent.sandbox.seccomp import is_supported, numbers
from hermes_agent.sandbox.walls import SYSTEM, Walls

pytestmark = [
    pytest.mark.skipif(not is_supported(), reason="this kernel hands no call over"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="calls by the numbers of this kind of machine"),
]
CALLER = f"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
N = {numbers(CALLS, "x86_64")}
def call(name, *given):
    number = N[name]
    kept = [ctypes.c_long(each) if isinstance(each, int) else each for each in given]
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *kept) else 0
def ways(path, folder, name, fd):
    times, value = struct.pack("=4q", 1, 0, 2, 0), b"v"
    given = struct.pack("=QII", ctypes.addressof(kept), 1, 0)
    yield "chmod", path, 0o741
    yield "fchmod", fd, 0o742
    yield "fchmodat", folder, name, 0o743
    yield "fchmodat2", folder, name, 0o744, 0x100
    yield "fchmodat2", fd, b"", 0o745, 0x1000
    yield "chown", path, os.getuid(), os.getgid()
    yield "lchown", path, os.getuid(), -1
    yield "fchown", fd, -1, os.getgid()
    yield "fchownat", folder, name, os.getuid(), -1, 0
    yield "fchownat", fd, b"", os.getuid(), -1, 0x1000
    yield "utime", path, struct.pack("=2q", 5, 6)
    yield "utimes", path, struct.pack("=4q", 7, 8, 9, 10)
    yield "futimesat", folder, name, None
    yield "utimensat", folder, name, times, 0
    yield "utimensat", fd, None, times, 0
    yield "setxattr", path, b"user.a", value, 1, 0
    yield "lsetxattr", path, b"user.b", value, 1, 0
    yield "fsetxattr", fd, b"user.c", value, 1, 0
    yield "setxattrat", folder, name, 0, b"user.d", given, 16
    yield "removexattr", path, b"user.a"
    yield "lremovexattr", path, b"user.b"
    yield "fremovexattr", fd, b"user.c"
    yield "removexattrat", folder, name, 0, b"user.d"
    number = fd if isinstance(fd, int) else -1
    yield "chmod", b"/proc/self/fd/%d" % number, 0o746
    yield "chmod", b"/dev/fd/%d" % number, 0o747
kept = ctypes.create_string_buffer(b"v")
"""


class Session:
    def __init__(self, folder: Path, *, network: bool) -> None:
        self.work, self.other = folder / "work", folder / "other"
        for each in (self.work, self.other):
            each.mkdir()
        (self.other / "file").write_text("theirs")
        walls = Walls(readable=(*SYSTEM, sys.prefix, sys.base_prefix, str(self.other)), network=network)
        env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self.place = LocalPlace(
            folder=folder / "records",
            env=env,
            jail=partial(jail_of, "landlock", walls),
            network=None if network else Network(),
        )
        self.count = 0

    async def __call__(self, text: str) -> tuple[int | None, str]:
        self.count += 1
        running = await self.place.start(f"g/{self.count}", Command(text=text, folder=str(self.work)))
        ended = await running.wait()
        return ended.code, (await running.read(0, 1 << 16)).decode(errors="replace")

    async def python(self, text: str) -> str:
        (self.work / "program.py").write_text(CALLER + text)
        return (await self(f"exec {sys.executable} -IS program.py {self.other}"))[1]

    def state(self) -> list[object]:
        paths = [self.other, *self.other.rglob("*")]
        facts = [path.lstat() for path in paths]
        return [
            (each.st_mode, each.st_uid, each.st_mtime_ns, each.st_ctime_ns, os.listxattr(path, follow_symlinks=False))
            for path, each in zip(paths, facts, strict=True)
        ]


@pytest.fixture(params=[False, True], ids=["watched connections", "the whole network"])
async def session(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Session]:
    try:
        jail_of("landlock", Walls())
    except CannotJail as reason:
        pytest.skip(str(reason))
    made = Session(tmp_path, network=request.param)
    yield made
    await made.place.close()


async def test_each_way_changes_what_may_be_written(session: Session) -> None:
    text = """
os.mkdir("in")
open("in/file", "w").close()
fd, folder = os.open("in/file", os.O_RDONLY), os.open("in", os.O_RDONLY)
failed = [(way[0], number) for way in ways(b"in/file", folder, b"file", fd) if (number := call(*way))]
failed = [each for each in failed if each[1] not in (38, 95)]  # what this kernel or file system does not know
print(failed, oct(os.stat(fd).st_mode & 0o777), os.stat(fd).st_mtime)
call("utimensat", folder, b"file", struct.pack("=4q", 0, (1 << 30) - 2, 77, 0), 0)
os.symlink("file", "in/link")
call("utimes", b"in", struct.pack("=4q", 1, 2, 3, 4))
call("utimensat", folder, b"link", struct.pack("=4q", 9, 9, 9, 9), 0x100)
print(os.stat(fd).st_atime, os.stat(fd).st_mtime, os.stat("in").st_mtime_ns, os.lstat("in/link").st_mtime_ns)
"""
    assert await session.python(text) == "[] 0o747 2.0\n1.0 77.0 3000004000 9000000009\n"


async def test_no_way_changes_anything_elsewhere(session: Session) -> None:
    text = """
os.chdir(sys.argv[1])
fd, folder, out = os.open("file", os.O_RDONLY), os.open(".", os.O_RDONLY), os.environb[b"HOME"] + b"/link"
os.symlink(sys.argv[1], out)
os.symlink(sys.argv[1] + "/file", out + b"2")
for path in (b"file", sys.argv[1].encode() + b"/file", out + b"/file", out + b"2", b"/proc/self/cwd/file"):
    for way in ways(path, folder, b"file", fd):
        if call(*way) == 0 and way[0] not in ("lsetxattr", "lremovexattr", "lchown"):
            print("changed", way)
for way in ways(b".", -100, b"../other", folder):
    if call(*way) == 0:
        print("changed", way)
for way in ways(b"/usr/bin/env", -100, b"/usr/bin/env", 1):
    if call(*way) == 0:
        print("changed", way)
print("done")
"""
    before = session.state()

    assert await session.python(text) == "done\n"
    assert session.state() == before


async def test_a_path_or_folder_exchanged_meanwhile_leads_nowhere_else(session: Session) -> None:
    text = """
import mmap, threading
good, bad = b"./mine\\0", b"./../other/file\\0"
open("mine", "w").close()
os.mkdir("flips")
open("flips/file", "w").close()
shared = mmap.mmap(-1, 4096)
path = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(shared)))
shared[:16] = bad.ljust(16, b"\\0")
if (child := os.fork()) == 0:
    while True:
        shared[:16] = good.ljust(16, b"\\0")
        shared[:16] = bad.ljust(16, b"\\0")
if (other := os.fork()) == 0:
    os.symlink(sys.argv[1], "flip")
    while True:
        os.rename("flips", "spare"); os.rename("flip", "flips")
        os.rename("flips", "flip"); os.rename("spare", "flips")
for _ in range(150):
    call("chmod", path, 0o777)
    call("chmod", b"flips/file", 0o777)
os.kill(child, 9), os.kill(other, 9)
print(oct(os.stat("mine").st_mode & 0o777))
"""
    before = session.state()

    await session.python(text)
    assert session.state() == before


async def test_calls_that_mean_nothing_fail_and_the_next_is_served(session: Session) -> None:
    text = """
top = os.getcwd()
os.mkdir("in"), os.chdir("in")
for name in N:
    for where in (0, 1, 1 << 62, -1, -100):
        for other in (0, 3, -1, 1 << 62):
            call(name, where, other, other, where, other, 1 << 40)
os.chdir(top)
for path in (b"", b"a" * 5000, b"none", b"/proc/self/fd/99", b"program.py/x", b"/proc/1/root/x", b"/proc/self/root/x"):
    assert call("chmod", path, 0o600), path
print(call("chmod", b"program.py", 0o640), oct(os.stat("program.py").st_mode & 0o777))
"""
    assert await session.python(text) == "0 0o640\n"


async def test_a_command_has_no_more_rights_through_it_than_itself(session: Session) -> None:
    text = "open('f', 'w').close(); print(call('chown', b'f', 12345, 12345), call('chmod', b'f', 0o4755))"

    assert await session.python(text) == "1 0\n"


async def test_flags_of_files_are_not_changed(session: Session) -> None:
    text = """
import fcntl
fd = os.open(sys.argv[1] + "/file", os.O_RDONLY)
for number in (0x40086602, 0x401C5820):
    try:
        fcntl.ioctl(fd, number, bytes(64))
        print("changed")
    except OSError as error:
        print(error.errno)
"""
    assert await session.python(text) == "95\n95\n"


async def test_the_session_s_own_folders_and_files_without_a_name_are_changed(session: Session) -> None:
    text = 'cd "$TMPDIR" && touch -d @5 a && chmod 640 a && cp -p a "$HOME/b" && stat -c %a.%Y "$HOME/b" && rm a'
    gone = "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.unlink('f'); print(call('fchmod', fd, 0o600))"

    assert await session(text) == (0, "640.5\n")
    assert await session.python(gone) == "0\n"


async def test_everyday_programs_keep_working(session: Session) -> None:
    made = session.other / "repo"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(made)]
    made.mkdir()
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one", "--allow-empty"]):
        (made / "x.sh").write_text("#!/bin/sh\necho ran\n")
        subprocess.run([*git, *words], check=True)  # noqa: ASYNC221 - some milliseconds
    text = f"""set -e
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
git clone -q {made} clone
cp -p clone/x.sh . && chmod +x x.sh && ./x.sh
install -m 751 x.sh installed && mkdir -p -m 700 private && touch -d 2001-02-03 x.sh
tar -cf all.tar x.sh installed && mkdir out && tar -xpf all.tar -C out
stat -c %a.%y out/x.sh out/installed | cut -c 1-14
{sys.executable} -m venv --without-pip venv && venv/bin/python -c 'print("venv")'
"""
    code, output = await session(text)

    assert (code, output.splitlines()) == (0, ["ran", "755.2001-02-03", output.splitlines()[2], "venv"])
    assert output.splitlines()[2].startswith("751.")
