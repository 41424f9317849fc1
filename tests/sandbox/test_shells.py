"""Every text of this program that a shell reads means the same to the `sh` of Debian, of Alpine and of macOS."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.app.hooks import IN_HOME
from hermes_agent.sandbox.backends.docker import FITS, WAITS
from hermes_agent.sandbox.backends.ssh import GREETING
from hermes_agent.sandbox.control_group import JOINED
from hermes_agent.sandbox.jail import limits
from hermes_agent.sandbox.sync.sides import FETCH, MARK, REMOVE, SCAN, SEND
from hermes_agent.sandbox.transport import supervisor
from hermes_agent.sandbox.walls import Walls
from hermes_agent.sandbox.wrapper import CLAIM, begin, reached_script, script
from tests.architecture.source import ROOT

SHELLS = {
    "Debian": ["dash"],
    "Alpine": ["busybox", "sh"],
    "macOS": ["bash", "--posix"],  # its own is bash 3.2 in this mode; supervisor.sh and jails need Linux anyway
}
BYTES = bytes(range(1, 256)) * 3


class Shell:
    """One of them, in a folder."""

    def __init__(self, argv: list[str], folder: Path) -> None:
        self.argv, self.folder = argv, folder

    def __call__(self, text: str, *arguments: str, given: bytes = b"", code: int | None = 0) -> bytes:
        """What the text printed; nothing may be said beside it. Any `code` will do where it is None."""
        argv = [*self.argv, "-c", text, *arguments]
        done = subprocess.run(argv, input=given, cwd=self.folder, capture_output=True, timeout=20, check=False)
        assert done.stderr == b""
        assert code in (done.returncode, None), done.stdout
        return done.stdout

    def keep(self, what: str, *arguments: str, given: bytes = b"") -> bytes:
        """What the supervisor says: its words alone count."""
        return self(supervisor(), "supervisor", what, str(self.folder / "exec"), *arguments, given=given, code=None)


def local_commands(sh: Shell) -> None:
    folder = sh.folder
    text = "echo one; export A='x y'; cd /usr; (exit 3)"
    made = script(
        folder=str(folder), begins=begin(str(folder), "/"), kept="", keeps_as='"$PWD"', text=text, counts=True
    )
    assert sh(f"{CLAIM}\n{made}", code=3) == b"one\n"
    assert re.fullmatch(r"3 \d+\n", (folder / "exit").read_text())
    (folder / "env").rename(folder / "kept")
    (folder / "pid").unlink()
    again = script(
        folder=str(folder), begins=begin(str(folder), "/"), kept=str(folder / "kept"), keeps_as="", text="exec echo $A"
    )
    assert sh(f"{CLAIM}\n{again}") == b"x y\n"


def reached_commands(sh: Shell) -> None:
    (sh.folder / "env").touch()
    made = reached_script(kept="/none", env={"B": "it's"}, keeps=True, has_workdir=False, text='echo "$B"; cd /usr')
    (sh.folder / "script").write_text(made)
    ran = subprocess.run([*sh.argv, str(sh.folder / "script"), "/", "/"], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"it's\n", b"")
    assert (sh.folder / "env").read_text().startswith("# /usr\n")


def kept_commands(sh: Shell) -> None:
    command, folder = b'{"text":"x"}', str(sh.folder)

    def start(name: str, text: str, mode: str, limit: str) -> bytes:
        return sh.keep("start", f"g/{name}", "g", "yes", folder, "", mode, limit, given=command + b"\n" + text.encode())

    assert start("a", "echo k\\\\n; cat; exit 3", "plain", "9.5").split(b"\n")[1].startswith(b"ended 3 ")
    begun, ended, _ = start("b", "trap '' TERM; sleep 60; sleep 61", "plain", "0.5").split(b"\n", 2)
    assert begun == f"begun {folder}".encode()
    assert ended.startswith(b"ended 137 ")
    assert start("b", "", "plain", "0") == b"exists\n"
    assert start("c", "read a; echo got $a; sleep 60", "background", "0") == f"begun {folder}\n".encode()
    assert sh.keep("send", "g/c", given=b"hello\n") == b"ok\n"
    assert sh.keep("poll", "g/c", "g") == b"running\n"
    assert sh.keep("attach", "g/c").split(b"\n") == [b"found", folder.encode(), command, b""]
    assert sh.keep("attach", "g/none") == b"none\n"
    assert sh.keep("list", "g").endswith(b" g/c\n")
    while sh.keep("size", "g/c") != b"ok 10\n":
        pass
    assert sh.keep("cover", "g/c", "4", given=b"HELLO") == b"ok\n"
    assert sh.keep("part", "g/c", "4", "3") == b"ok\nHEL"
    gone, ended, _ = sh.keep("stop", "g/c", "g").split(b"\n", 2)
    assert (gone, ended.split()[:2]) == (b"gone", [b"ended", b"143"])
    assert sh.keep("await", "g/a", "g").startswith(b"ended 3 ")
    assert sh.keep("directory", "g").startswith(b"ok\n")
    assert sh.keep("rewrite", "g/c", given=BYTES) == b"ok\n"
    assert sh.keep("part", "g/c", "0", "10000") == b"ok\n" + BYTES
    assert sh.keep("rewrite", "g/none", given=BYTES).startswith(b"fail ")
    before = sh.keep("where")
    assert re.fullmatch(rb"ok [\w.-]+ [\w-]{36} \S+\n", before)
    assert sh.keep("where") == before
    assert sh.keep("prune", "60", "0") == b"ok 3\n"
    assert ends_at_the_look(sh).startswith(b"ended 3 ")
    assert sh.keep("where") != before


def ends_at_the_look(sh: Shell) -> bytes:
    """What the supervisor says of a command that ends between its looks at the record and at the process."""
    record = sh.folder / "exec/g/d"
    record.mkdir()
    (record / "leader").write_text("1\n")
    os.mkfifo(record / "pid")
    asked = [*sh.argv, "-c", supervisor(), "supervisor", "poll", str(sh.folder / "exec"), "g/d", "g"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE) as poll:
        with (record / "pid").open("w"):  # as soon as the supervisor reads it
            (record / "exit").write_text("3 1.00 2.00 0\n")
        return poll.communicate(timeout=20)[0]


def jails(sh: Shell) -> None:
    given = sh(f"{limits(Walls(processes=300, memory_mb=512), ())}cat /proc/self/limits").decode()
    assert re.search(r"Max processes +300 +300 ", given), given
    assert re.search(r"Max data size +536870912 +536870912 ", given), given
    assert sh(JOINED, "/dev/null", "echo", "in it") == b"in it\n"


def containers(sh: Shell) -> None:
    assert sh(FITS) == b""
    with subprocess.Popen([*sh.argv, "-c", WAITS], start_new_session=True) as waiting:
        sleeps = ["pgrep", "-P", str(waiting.pid), "sleep"]
        while subprocess.run(sleeps, capture_output=True, check=False).returncode:
            pass
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait(5) == 0
        subprocess.run(["pkill", "-s", str(waiting.pid)], check=False)


def machines(sh: Shell) -> None:
    assert len(sh(GREETING).split(b"\n")) == 3


def synced_files(sh: Shell) -> None:
    folder, name = str(sh.folder / "it's"), "./a b"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(BYTES)
        tar.addfile(entry, io.BytesIO(BYTES))
    look = (SCAN, "sync", folder, "(", "-name", ".git", ")", "-prune", "-o", "-type", "f")
    sh(*look)
    sh(MARK, "sync", folder, "an id")
    which = sh(*look).split(b"\0")[2].decode()
    assert which.startswith("an id:")
    sh(SEND, "sync", folder, which, given=archive.getvalue())
    assert b" ./a b//" in sh(*look).split(b"\0")[3]
    listed = name.encode() + b"\0"
    with tarfile.open(fileobj=io.BytesIO(sh(FETCH, "sync", folder, which, given=listed))) as tar:
        assert tar.extractfile(name).read() == BYTES
    sh(REMOVE, "sync", folder, which, given=listed)
    assert not (sh.folder / "it's/a b").exists()


def hooks(sh: Shell) -> None:
    assert sh(f"{IN_HOME}\npwd", "/usr") == b"/usr\n"


TEXTS: dict[str, tuple[Callable[[Shell], None], ...]] = {
    "sandbox/backends/local.py": (local_commands,),
    "sandbox/transport.py": (kept_commands, reached_commands),
    "sandbox/control_group.py": (jails,),
    "sandbox/backends/docker.py": (containers,),
    "sandbox/backends/ssh.py": (machines, synced_files),
    "app/hooks.py": (hooks,),
}
PLAIN = {
    "sandbox/piped.py": "limits of `jails`, a folder and a redirection",
}
HANDS_OVER = re.compile(r"""(["'](/bin/)?sh["']|_shell), *["']-c["']|entrypoint["'], *["']sh["']""")


@pytest.mark.parametrize("who", SHELLS)
@pytest.mark.parametrize(
    "check", [check for checks in TEXTS.values() for check in checks], ids=lambda each: each.__name__
)
def test_every_shell_understands_what_it_is_handed(tmp_path: Path, who: str, check: Callable[[Shell], None]):
    if shutil.which(SHELLS[who][0]) is None:
        pytest.skip(f"no {SHELLS[who][0]} here")
    check(Shell(SHELLS[who], tmp_path))


def test_whoever_hands_a_text_to_a_shell_is_in_the_table():
    source = ROOT / "src" / "hermes_agent"
    found = {str(path.relative_to(source)) for path in source.rglob("*.py") if HANDS_OVER.search(path.read_text())}

    assert found - {"sandbox/wrapper.py"} == set(TEXTS) | set(PLAIN)
