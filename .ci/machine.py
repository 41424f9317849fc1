"""What the tests use of the machine: PostgreSQL, and where they are there other programs of Debian."""

import os
import shutil
import subprocess
from pathlib import Path

# Without this, Debian's package would also make and start a server of its own.
CLUSTER_SETTINGS = Path("/etc/postgresql-common/createcluster.conf")

# Debian's packages, and the program by which each is known to be there. Tests that need one are skipped without it.
PROGRAMS = {
    "ripgrep": "rg",
    "bubblewrap": "bwrap",
    "podman": "podman",
    "runc": "runc",
    "openssh-server": "sshd",
    "dovecot-imapd": "dovecot",
    "chromium-driver": "chromedriver",
    "pgbouncer": "pgbouncer",
    "busybox": "busybox",
}
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def provide() -> bool:
    """Install what is missing where that can be done without asking; whether all of the tests can run then."""
    missing = [package for package, program in PROGRAMS.items() if shutil.which(program, path=PATH) is None]
    if not has_postgresql():
        missing.insert(0, "postgresql")
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"machine     installing {' and '.join(missing)} with apt-get", flush=True)
        install(missing)
    if has_postgresql():
        return True
    print("machine     no PostgreSQL (apt install postgresql): its tests are skipped, the coverage is not judged")
    return False


def has_postgresql() -> bool:
    return bool(shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))


def install(packages: list[str]) -> None:
    if not CLUSTER_SETTINGS.exists():
        CLUSTER_SETTINGS.parent.mkdir(parents=True, exist_ok=True)
        CLUSTER_SETTINGS.write_text("create_main_cluster = false\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    keep = ["-o", "Dpkg::Options::=--force-confold"]
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *keep, *packages]):
        result = subprocess.run(
            ["apt-get", "--quiet", *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if result.returncode:
            last = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
            print(f"machine     apt-get {command[0]} failed: {last}")
            return
