"""podman without a daemon, with a storage of the tests' own, and an image made of this machine's own programs."""

from __future__ import annotations

import atexit
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path

IMAGE = "localhost/hermes-test:1"
LINKS = ("bin", "sbin", "lib", "lib64")
FOLDERS = ("dev", "etc", "hermes", "mnt", "proc", "root", "run", "sys", "tmp", "usr", "var", "var/tmp")
# The programs themselves are this machine's, shown read-only.
ARGUMENTS = ("-v", "/usr:/usr:ro")


class NoPodman(Exception):
    """Why there is none here."""


@cache
def podman() -> tuple[str, ...]:
    """The command, once it has run a container. Raises `NoPodman`."""
    program = shutil.which("podman")
    if program is None:
        raise NoPodman("podman is not installed (apt-get install podman runc)")
    folder = Path(tempfile.mkdtemp(prefix="hermes-podman-", dir="/var/tmp"))
    storage = [program, "--root", str(folder / "root"), "--runroot", str(folder / "run")]
    reasons = []
    for runtime in ("runc", "crun"):
        command = [*storage, *(["--runtime", runtime] if shutil.which(runtime) else [])]
        reason = trial(command)
        if not reason:
            atexit.register(remove, command, folder)
            return tuple(command)
        reasons.append(f"{runtime}: {reason}")
    remove(storage, folder)
    raise NoPodman("; ".join(reasons))


def trial(command: list[str]) -> str:
    """Make the image and run it once; why that did not work, or nothing."""
    imported = subprocess.run([*command, "import", "-", IMAGE], input=image(), capture_output=True, check=False)
    arguments = ["run", "--rm", "--network", "none", "--cap-drop", "ALL", "--pids-limit", "100", *ulimits(), *ARGUMENTS]
    ran = subprocess.run([*command, *arguments, IMAGE, "/bin/true"], capture_output=True, check=False)
    failed = imported if imported.returncode else ran
    return failed.stderr.decode().strip().rpartition("\n")[2] if failed.returncode else ""


def ulimits() -> list[str]:
    return ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]


def image() -> bytes:
    """A root file system without programs."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in FOLDERS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name in LINKS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(entry)
        users = f"root:x:0:0::/root:/bin/sh\nme:x:{os.getuid() or 1000}:{os.getgid() or 1000}::/root:/bin/sh\n".encode()
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(users)
        tar.addfile(entry, io.BytesIO(users))
    return content.getvalue()


def remove_containers() -> None:
    """End every container of the tests."""
    subprocess.run([*podman(), "rm", "-f", "-a", "-t", "0"], capture_output=True, check=False)


def remove(command: list[str], folder: Path) -> None:
    subprocess.run([*command, "rm", "-f", "-a", "-t", "0"], capture_output=True, check=False)
    subprocess.run([*command, "rmi", "-f", "-a"], capture_output=True, check=False)
    subprocess.run(["umount", str(folder / "root" / "overlay")], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)
