"""What the tests use of the machine beside Python: PostgreSQL, and ripgrep where it is there."""

import os
import shutil
import subprocess
from pathlib import Path

# Without this, Debian's package would also make and start a server of its own.
CLUSTER_SETTINGS = Path("/etc/postgresql-common/createcluster.conf")


def provide() -> bool:
    """Install what is missing where that can be done without asking; whether all of the tests can run then."""
    missing = [
        name for name, is_there in (("postgresql", has_postgresql()), ("ripgrep", has_ripgrep())) if not is_there
    ]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"machine     installing {' and '.join(missing)} with apt-get", flush=True)
        install(missing)
    if has_postgresql():
        return True
    print("machine     no PostgreSQL (apt install postgresql): its tests are skipped, the coverage is not judged")
    return False


def has_postgresql() -> bool:
    return bool(shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))


def has_ripgrep() -> bool:
    return shutil.which("rg") is not None


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
