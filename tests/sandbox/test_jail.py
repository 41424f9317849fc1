"""Nothing leads out of a jail: each attempt fails, and the machine is as it was."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.control_group import ControlGroup
from hermes_agent.sandbox.jail import CannotJail, jail_of, toolchains
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.sandbox.walls import SYSTEM, SYSTEM_CREDENTIALS, Walls
from tests.sandbox.escapes import BOMB, listening

SECRET = "sk-very-secret"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "hermes home"
    folder.mkdir()
    (folder / ".env").write_text(f"KEY={SECRET}\n")
    return folder


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    try:
        jail_of(request.param, Walls())
    except CannotJail as reason:
        pytest.skip(f"no {request.param} here: {reason}")
    return str(request.param)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def jailed(kind: str, home: Path, work: Path, tmp_path: Path) -> Jailed:
    return Jailed(kind, home, work, tmp_path)


PROCESSES = (
    200 + os.getpid() % 50
)  # each worker's own: commands under one limit share a control group, which a bomb fills


class Jailed:
    """A jailed place and what a command said there."""

    def __init__(self, kind: str, home: Path, work: Path, folder: Path) -> None:
        self.kind, self.home, self.work = kind, home, work
        self.folder = folder
        self.count = 0

    def place(self, **walls: object) -> LocalPlace:
        lends = str(self.home / "cache" / "secrets")
        readable = (*SYSTEM, *toolchains(str(self.folder), os.environ))
        closed = (str(self.home), *SYSTEM_CREDENTIALS)
        made = Walls(readable=readable, closed=closed, lends=lends, person=str(self.folder))
        made = replace(made, **{"processes": PROCESSES, "tmp_mb": 8, **walls})
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        return LocalPlace(folder=self.home / "cache" / "jailed", env=env, jail=lambda: jail_of(self.kind, made))

    async def __call__(self, text: str, **walls: object) -> tuple[int | None, str]:
        self.count += 1
        running = await self.place(**walls).start(f"g/{self.count}", Command(text=text, folder=str(self.work)))
        ended = await running.wait()
        return ended.code, (await running.read(0, 1 << 16)).decode(errors="replace")


async def test_the_workspace_and_what_is_named_may_be_written_and_nothing_else(jailed: Jailed, tmp_path: Path) -> None:
    named, other = tmp_path / "named", tmp_path / "other"
    for folder in (named, other):
        folder.mkdir()
    text = f"echo a >here; echo b >{named}/there; echo c >{other}/no; echo d >/etc/hermes-no; echo e >~/no; mkdir /no"

    await jailed(text, writable=(str(named),))

    assert (jailed.work / "here").read_text() == "a\n"
    assert (named / "there").read_text() == "b\n"
    assert list(other.iterdir()) == []
    assert not any(map(os.path.exists, ("/etc/hermes-no", "/no", tmp_path / "no")))


@pytest.mark.parametrize(
    "way",
    ["cat '{0}/.env'", "cp -r '{0}' copy; cat copy/.env", "ln -s '{0}/.env' link; cat link", "grep -r KEY= '{0}'"],
)
async def test_the_home_is_not_seen(jailed: Jailed, way: str) -> None:
    _, output = await jailed(way.format(jailed.home))

    assert SECRET not in output


async def test_a_loopback_port_is_out_of_reach_until_the_network_is_allowed(jailed: Jailed) -> None:
    with listening() as (port, reached):
        text = f"exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'GET /in HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3"
        closed, _ = await jailed(text)
        was_reached = list(reached)
        opened, output = await jailed(text, network=True)

    assert (closed != 0, was_reached) == (True, [])
    assert (opened, reached) == (0, ["/in"]), output


async def test_a_fork_bomb_is_bounded_and_goes_out_with_the_command(jailed: Jailed) -> None:
    if "pids" not in ControlGroup(PROCESSES, 0, "").held and (jailed.kind == "landlock" or os.geteuid() == 0):
        pytest.skip("no control groups here: the watchdog ends it, and tests/sandbox/test_enforcer.py shows how")
    others = len(next(os.walk("/proc"))[1]) if jailed.kind == "landlock" else 0
    place = jailed.place(
        processes=PROCESSES + 50 + len(jailed.kind)
    )  # one limit is one group: those of others would starve in it
    running = await place.start("g/bomb", Command(text=BOMB, folder=str(jailed.work)))
    await running.wait()

    output = (await running.read(0, 1 << 16)).decode()
    counted = [
        int(line) for line in output.splitlines() if line.isdigit()
    ]  # a shell that finds no room says so after it
    assert counted, output
    assert counted[-1] - others <= PROCESSES + 100, output
    assert await running.kill()


async def test_the_disk_is_filled_no_further_than_the_jail_allows(jailed: Jailed) -> None:
    if jailed.kind == "landlock":
        pytest.skip("Landlock shows none of these folders")
    before = shutil.disk_usage("/tmp").used
    for folder in ("/var/tmp", "/dev/shm", "/run"):
        code, output = await jailed(f"head -c 20000000 /dev/zero >{folder}/full")
        assert code != 0, (folder, output)

    assert not any(map(os.path.exists, ("/var/tmp/full", "/run/full")))
    assert shutil.disk_usage("/tmp").used - before < 20_000_000


async def test_processes_outside_can_be_neither_traced_nor_signalled(jailed: Jailed, work: Path) -> None:
    ours = os.getpid()
    text = f"kill -0 {ours} && echo signalled; cat /proc/{ours}/environ >/dev/null && echo looked; echo done"
    traced = f"python3 -c 'import ctypes; print(\"traced\", ctypes.CDLL(None).ptrace(16, {ours}, 0, 0))'"

    _, output = await jailed(f"{text}; {traced}")

    assert "done" in output
    assert "signalled" not in output
    assert "traced 0" not in output
    if jailed.kind == "bubblewrap":
        _, inside = await jailed("cat /proc/[0-9]*/comm")
        assert "pytest" not in inside


async def test_no_capability_is_left_and_none_is_gained(jailed: Jailed) -> None:
    _, output = await jailed("grep -E 'Cap(Eff|Prm|Amb)' /proc/self/status; mount -t tmpfs none /mnt; mknod sda b 8 0")

    assert [line.split()[1].strip("0") for line in output.splitlines() if line.startswith("Cap")] == ["", "", ""]
    assert not (jailed.work / "sda").exists()


async def test_the_settings_of_the_kernel_are_not_changed(jailed: Jailed) -> None:
    setting = Path("/proc/sys/kernel/ngroups_max")  # never writable, so that a hole does no harm
    _, output = await jailed(
        f"[ -w {setting.parent}/hostname ] && [ $(id -u) != 0 ] && echo open; echo x >{setting}; :"
    )
    _, mounts = await jailed("(echo hermes >/proc/sys/kernel/domainname) 2>&1")

    assert "open" not in output
    assert "ermission" in mounts or "ead-only" in mounts


async def test_a_command_replaces_nothing_of_its_record(jailed: Jailed) -> None:
    record = jailed.home / "cache" / "jailed" / "g" / "1"
    text = (
        f"cd '{record}'; rm -f out exit env; ln -s '{jailed.home}/.env' out2; mv exit gone; ln -sf /etc/passwd exit; :"
    )

    await jailed(text)

    names = {path.name for path in record.iterdir() if not path.is_symlink()}
    assert {"out", "exit", "env", "meta.json", "pid"} <= names
    assert not any(path.is_symlink() for path in record.iterdir())


async def test_a_command_cannot_say_that_it_is_another_process_nor_how_many_are_left(jailed: Jailed) -> None:
    record = jailed.home / "cache" / "jailed" / "g" / "1"

    await jailed(f"cat /proc/1/stat >|'{record}/pid'; echo 0 99 x >|'{record}/exit'; kill -9 $$")

    assert (record / "pid").read_text().split()[0] not in ("1", "")
    again = await jailed.place().attach("g/1")
    assert again is not None
    ended = await again.wait()
    assert (ended.code, ended.children) == (None, False)


async def test_a_command_whose_starter_died_before_it_wrote_down_who_runs_is_found(jailed: Jailed) -> None:
    text = "while [ ! -e go ]; do sleep 0.05; done; echo late"
    await jailed.place().start("g/a", Command(text=text, folder=str(jailed.work)))
    (jailed.home / "cache" / "jailed" / "g" / "a" / "pid").write_bytes(b"")

    again = await jailed.place().attach("g/a")
    assert again is not None
    assert await again.poll() is None
    (jailed.work / "go").touch()
    assert (await again.wait()).code == 0
    assert await again.read(0, 100) == b"late\n"


async def test_a_file_is_lent_to_one_command_alone(jailed: Jailed) -> None:
    lent = jailed.home / "cache" / "secrets" / "k-KEY.lent"
    lent.parent.mkdir(parents=True)
    lent.write_text(SECRET)
    text = f"cat '{lent}'; echo; echo x >'{lent}'"

    async def said(exec_id: str, command: Command) -> str:
        running = await jailed.place().start(exec_id, command)
        await running.wait()
        return (await running.read(0, 1000)).decode()

    command = Command(text=text, folder=str(jailed.work), lent=(str(lent),))
    assert (await said("g/a", command)).startswith(SECRET)
    assert SECRET not in await said("g/b", replace(command, lent=()))
    assert lent.read_text() == SECRET


async def test_a_link_of_a_jailed_command_lends_nothing_that_is_hidden(jailed: Jailed) -> None:
    link = jailed.work / "k-KEY.lent"
    assert (await jailed(f"ln -s '{jailed.home}/.env' {link.name}"))[0] == 0

    command = Command(text=f"cat '{link}' '{jailed.home}/.env'", folder=str(jailed.work), lent=(str(link),))
    running = await jailed.place().start("g/lent", command)
    await running.wait()

    assert SECRET not in (await running.read(0, 1000)).decode()


async def test_a_workspace_that_is_the_system_is_refused(jailed: Jailed) -> None:
    with pytest.raises(PlaceFailed, match="holds the system"):
        await jailed.place().start("g/a", Command(text="true", folder="/"))


CALLS = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for name, arguments in (("unshare", (0x10000000,)), ("mount", (b"a", b"/tmp", b"tmpfs", 0, 0)), ("syscall", (321, 0))):
    print(name, getattr(libc, name)(*arguments), ctypes.get_errno())
print("init", libc.ptrace(16, 1, 0, 0), ctypes.get_errno())
"""


async def test_calls_without_business_in_a_wall_are_refused(jailed: Jailed) -> None:
    code, output = await jailed(f"python3 -c '{CALLS}'")

    assert code == 0, output
    assert [line.split()[1:] for line in output.splitlines()] == [["-1", "1"]] * 4, output


async def test_a_program_may_be_traced_by_who_started_it(jailed: Jailed) -> None:
    if shutil.which("strace") is None:
        pytest.skip("no strace here")
    code, output = await jailed("strace -f -o trace sh -c 'sleep 0.01 & wait'; grep -c execve trace")

    assert (code, int(output.split()[-1]) >= 2) == (0, True), output


async def test_a_session_keeps_its_own_tmp_and_home_and_leaves_the_machine_s_alone(jailed: Jailed) -> None:
    await jailed('echo kept >"$TMPDIR/hermes-x"; echo mine >~/.rc; mktemp >name')

    code, output = await jailed('cat "$TMPDIR/hermes-x" ~/.rc; test -e "$(cat name)" && echo there')

    assert (code, output) == (0, "kept\nmine\nthere\n")
    assert not any(map(os.path.exists, (jailed.folder / ".rc", "/tmp/hermes-x")))


async def test_what_no_list_names_is_not_there(jailed: Jailed, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "secret").write_text(SECRET)

    _, output = await jailed(
        f"cat {tmp_path}/notes/secret /etc/shadow /root/.npmrc; ls /root /home /mnt; ls {tmp_path}"
    )

    assert SECRET not in output
    assert "root:*" not in output
    assert "root:!" not in output
    assert "notes" not in output.replace(f"{tmp_path}/notes", "")


async def test_a_closed_folder_in_the_workspace_is_covered_and_cannot_be_moved_away(jailed: Jailed) -> None:
    secret = jailed.work / "config" / "gh" / "hosts"
    secret.parent.mkdir(parents=True)
    secret.write_text(SECRET)
    closed = (str(jailed.home), str(secret.parent))

    for text in (
        "cat config/gh/hosts",
        "mv config away; mv config/gh gone",
        "cat away/gh/hosts gone/hosts config/gh/*",
    ):
        _, output = await jailed(f"{text}; ln config/gh/hosts hard; cat hard", closed=closed)
        assert SECRET not in output

    assert secret.read_text() == SECRET


async def test_a_link_out_of_the_workspace_leads_nowhere(jailed: Jailed, tmp_path: Path) -> None:
    (tmp_path / "private").write_text(SECRET)

    await jailed(f"ln -s {tmp_path} out; mkdir .venv; ln -s {tmp_path} .venv/bin")
    _, output = await jailed("cat out/private .venv/bin/private; echo x >out/new")

    assert SECRET not in output
    assert not (tmp_path / "new").exists()


async def test_ten_thousand_writable_folders_are_a_matter_of_moments(jailed: Jailed, tmp_path: Path) -> None:
    many = tmp_path / "many"
    for number in range(0, 10_000, 100):
        (many / str(number)).mkdir(parents=True)
    folders = tuple(f"{many}/{number}" for number in range(10_000))
    if jailed.kind == "bubblewrap":
        with pytest.raises(CannotJail, match="300 folders and no more"):
            jail_of(jailed.kind, Walls(writable=folders))
        return
    began = time.monotonic()

    _, output = await jailed(f"echo x >{many}/900/x; echo x >{many}/x", writable=folders)

    assert (many / "900" / "x").exists(), output
    assert not (many / "x").exists()
    assert time.monotonic() - began < 20


async def test_folders_that_would_open_the_system_are_refused(jailed: Jailed) -> None:
    with pytest.raises(PlaceFailed, match=r"terminal.writable.*holds the system"):
        jail_of(jailed.kind, Walls(writable=("/",)))
    with pytest.raises(PlaceFailed, match="is closed to commands"):
        await jailed.place().start("g/home", Command(text="true", folder=str(jailed.home)))


async def test_memory_is_limited(jailed: Jailed) -> None:
    if (
        "memory" in ControlGroup(PROCESSES, 128, "").held
    ):  # nothing is killed here: some machines count that for more than one
        _, output = await jailed("cat /proc/self/cgroup", memory_mb=128)
        assert f"-{PROCESSES}-128\n" in output
        return
    code, output = await jailed("python3 -c 'x = bytearray(300 << 20); print(len(x))'", memory_mb=128)
    assert code != 0
    assert str(300 << 20) not in output
