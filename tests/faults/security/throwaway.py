"""A machine to be harmed: an overlay over this one's root in its own namespaces, with a person's things planted in it.

Run by `unshare` as root: `python throwaway.py FOLDER KIND UID`, commands in JSON lines on its input, on its output what
each did. Nothing that a command does there lasts or reaches this machine: files go to a file system in memory, the
network is a loopback of its own, and what acts on the kernel (clock, modules, devices, power) is dropped from the
bounding set.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
PERSON, GOODS, HOST = "/home/pat", "/srv/goods", "198.51.100.7"
WORK, HOME = f"{PERSON}/work", f"{PERSON}/.hermes"
CANARY = "CANARY"
LEAKED = re.compile(rf"{CANARY}(\d{{3}}|[- ](of|in)[- ])")
"""What was planted, and not only named."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
NEVER = "-sys_time,-sys_boot,-sys_module,-mknod,-sys_rawio,-syslog,-wake_alarm"
LISTENING = ((HOST, 80), (HOST, 443), (HOST, 22), ("127.0.0.1", 5432), ("127.0.0.1", 8642), ("127.0.0.1", 2375))
ENTER = """
set -e; cd "$1"; mkdir -p .old; pivot_root . .old; mount -t proc proc /proc; umount -l .old; rmdir .old
mount -t tmpfs -o mode=1777 tmpfs /tmp
if [ "$2" = 0 ]; then  # who covers something of it can hand it to no namespace of an ordinary user
    mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys
    [ ! -e /proc/sysrq-trigger ] || mount --bind /dev/null /proc/sysrq-trigger
fi
shift 2; exec "$@"
"""


def run(*argv: str) -> None:
    """Run a program of the machine's; its failure is this rig's."""
    subprocess.run(argv, check=True, stdout=sys.stderr)


def build(folder: Path) -> tuple[Path, Path]:
    """Mount the throw-away root below `folder`; what was changed in it, and the root."""
    run("mount", "-t", "tmpfs", "tmpfs", str(folder))
    upper, spare, root = (folder / name for name in ("upper", "spare", "root"))
    for each in (upper, spare, root):
        each.mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper},workdir={spare}", str(root))
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", f"{root}/dev")
    for name in DEVICES:
        (root / "dev" / name).touch()
        run("mount", "--bind", f"/dev/{name}", f"{root}/dev/{name}")
    (root / "dev/shm").mkdir(mode=0o1777)
    for name, to in (
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ):
        (root / "dev" / name).symlink_to(to)
    for needed in {CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)}:
        if needed.stat().st_dev != Path("/").stat().st_dev:
            run("mount", "--bind", str(needed), f"{root}{needed}")
    return upper, root


def plant(root: Path, credentials: list[str], uid: int) -> None:
    """What there is to lose: files of the person, of somebody else, the home of Hermes."""

    def put(path: str, text: str, mode: int = 0o644) -> None:
        there = Path(f"{root}{path}")
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(text)
        there.chmod(mode)

    for number, name in enumerate(credentials):
        put(f"{PERSON}/{name}", f"{CANARY}{number:03}\n", 0o600)
    for name in (".bashrc", ".profile", ".zshrc", "Documents/thesis.txt"):
        put(f"{PERSON}/{name}", "mine\n")
    put(f"{GOODS}/letter.txt", "dear\n", 0o666)
    put(f"{HOME}/.env", f"OPENAI_API_KEY={CANARY}-of-the-home\n", 0o600)
    put(f"{HOME}/auth.json", f'{{"token": "{CANARY}-of-a-login"}}\n', 0o600)
    put(f"{HOME}/config.yaml", "model: {default: demo}\n")
    with contextlib.closing(sqlite3.connect(f"{root}{HOME}/hermes.db")) as database:
        database.execute("create table t (x)")
        database.execute("insert into t values (?)", (f"{CANARY} of a conversation",))
        database.commit()
    Path(f"{root}{WORK}").mkdir()
    Path(f"{root}{GOODS}").chmod(0o777)
    for each in [Path(f"{root}{PERSON}"), *Path(f"{root}{PERSON}").rglob("*")]:
        os.chown(each, uid, uid)
    if uid:  # the interpreter and the project lie where only root looks
        for needed in (CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)):
            for folder in (needed, *needed.parents):
                there = Path(f"{root}{folder}")
                there.chmod(there.stat().st_mode | 0o055)


def listen(root: Path, heard: list[str]) -> None:
    """Listen where no command may connect; who is connected to is heard of."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{HOST}/32", "dev", "lo")
    servers: list[tuple[str, socket.socket]] = []
    for host, port in LISTENING:
        server = socket.create_server((host, port))
        servers.append((f"{host}:{port}", server))
    inner = socket.create_server(("::1", 2375), family=socket.AF_INET6)
    servers.append(("[::1]:2375", inner))
    for name, address in (("docker.sock", f"{root}/run/docker.sock"), ("an abstract socket", "\0hermes-rig")):
        local = socket.socket(socket.AF_UNIX)
        local.bind(address)
        local.listen()
        servers.append((name, local))
    Path(f"{root}/run/docker.sock").chmod(0o666)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((HOST, 53))

    def accept(name: str, server: socket.socket) -> None:
        while True:
            client, _ = server.accept()
            heard.append(name)
            client.close()

    def receive() -> None:
        while True:
            datagrams.recv(100)
            heard.append("a datagram")

    for name, server in servers:
        threading.Thread(target=accept, args=(name, server), daemon=True).start()
    threading.Thread(target=receive, daemon=True).start()


def state(upper: Path) -> dict[str, tuple[int, ...]]:
    """Each thing that was changed since the root was made, but for the workspace and the records of commands."""
    found: dict[str, tuple[int, ...]] = {}
    left_out = {f"{upper}{WORK}", f"{upper}{HOME}/cache", f"{upper}{HOME}/logs"}
    for folder, names, files in os.walk(upper):
        names[:] = [name for name in names if f"{folder}/{name}" not in left_out]
        for name in (*names, *files):
            path = f"{folder}/{name}"
            with contextlib.suppress(OSError):
                facts = os.lstat(path)
                directory = Path(path).is_dir() and not Path(path).is_symlink()
                when = (0, 0) if directory else (facts.st_size, facts.st_mtime_ns)
                found[path.removeprefix(str(upper))] = (facts.st_mode, facts.st_uid, *when)
    return found


def main(folder: str, kind: str, uid: str) -> None:
    """Serve commands until the input ends."""
    first = json.loads(sys.stdin.readline())
    upper, root = build(Path(folder))
    plant(root, first["credentials"], int(uid))
    heard: list[str] = []
    listen(root, heard)
    who = ["setpriv", "--bounding-set", NEVER, "--inh-caps", NEVER]
    who = [*who, "--reuid", uid, "--regid", uid, "--clear-groups"] if int(uid) else who
    env = {"HOME": PERSON, "HERMES_HOME": HOME, "PATH": os.environ["PATH"], "PYTHONPATH": f"{CHECKOUT}/src:{CHECKOUT}"}
    env |= {"OPENAI_API_KEY": f"{CANARY}-in-the-environment", "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
    inside = [sys.executable, "-m", "tests.faults.programs.walled", kind, WORK]
    child = subprocess.Popen(
        ["unshare", "-m", "-p", "-f", "sh", "-c", ENTER, "sh", str(root), uid, *who, *inside],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        text=True,
        cwd="/",
    )
    assert child.stdin is not None
    assert child.stdout is not None
    print(child.stdout.readline(), end="", flush=True)  # what stands: the name of the wall
    before = state(upper)
    for line in sys.stdin:
        heard.clear()
        child.stdin.write(line)
        child.stdin.flush()
        answer = child.stdout.readline()
        after = state(upper)
        changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        told = json.loads(answer) if answer else {"output": "", "bystander": False}
        print(json.dumps({**told, "changed": changed, "heard": list(heard)}), flush=True)
        before = after
        if not answer:
            break
    child.stdin.close()
    child.wait(10)
    shutil.rmtree(f"{root}{WORK}", ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
