"""A throw-away PostgreSQL server for tests: a cluster in a temporary folder, reached by a UNIX socket only."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

USER = "hermes"
DATABASE = "postgres"
# Nothing here outlives the tests, so nothing is synced; a few connections per worker process.
SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "60",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "logging_collector": "off",
}


def binaries() -> Path | None:
    """The newest installed server's programs: where Debian keeps them, or beside `pg_ctl` on the path; None without."""
    debian = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()]
    if debian:
        return max(debian, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0))
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


class PostgresCluster:
    """A server process of its own. PostgreSQL refuses to run as root, so there it runs as `postgres` or `nobody`."""

    def __init__(self, programs: Path, *, durable: bool = False) -> None:
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="hermes-pg-"))
        self._settings = SETTINGS | ({"fsync": "on"} if durable else {})
        self._user = _unprivileged()
        self._names = count(1)
        if self._user is not None:
            shutil.chown(self._folder, self._user.pw_name)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        """Make the cluster where it is new, and start the server; it answers when this returns."""
        if not self._data.exists():
            self._run(
                "initdb", "--no-sync", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "-D", str(self._data)
            )
            settings = [f"{name} = {value}" for name, value in self._settings.items()]
            settings.append(f"unix_socket_directories = '{self._folder}'")
            self._set(*settings)
        self._run("pg_ctl", "-w", "-D", str(self._data), "-l", str(self._folder / "log"), "start")

    def standby(self) -> PostgresCluster:
        """A running standby of this server, which follows it; to be removed by its own."""
        other = PostgresCluster(self._programs)
        self._run(
            "pg_basebackup", "-R", "-c", "fast", "-h", str(self._folder), "-U", USER, "-D", str(self._data) + ".copy"
        )
        shutil.move(f"{self._data}.copy", other._data)
        other._set(f"unix_socket_directories = '{other._folder}'")
        other.start()
        return other

    def promote(self) -> None:
        """Make a standby the server that takes changes; it does when this returns."""
        self._run("pg_ctl", "-w", "-D", str(self._data), "promote")

    def dump(self) -> str:
        """The database as SQL."""
        return self._run("pg_dump", "-h", str(self._folder), "-U", USER, "-d", DATABASE)

    def restore(self, dump: str) -> None:
        """Run what was dumped."""
        file = self._folder / "dump.sql"
        file.write_text(dump, encoding="utf-8")
        self._run("psql", "-X", "-q", "-h", str(self._folder), "-U", USER, "-d", DATABASE, "-f", str(file))

    def _set(self, *settings: str) -> None:
        with (self._data / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
            file.write("\n".join([*settings, ""]))

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; `immediate` is how a crash looks to everybody else."""
        self._run("pg_ctl", "-w", "-D", str(self._data), "-m", mode, "stop")

    def hang_up(self) -> None:
        """End every connection, as a network or an administrator does."""
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    def remove(self) -> None:
        """Stop the server, by force where it does not within ten seconds, and take everything away."""
        with suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
            self._run("pg_ctl", "-w", "-t", "10", "-D", str(self._data), "-m", "immediate", "stop", seconds=15)
        with suppress(FileNotFoundError, ProcessLookupError):
            pid = int((self._data / "postmaster.pid").read_text().split()[0])  # There where it has not ended.
            if Path(f"/proc/{pid}/cwd").resolve() == self._data.resolve():
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def fresh_url(self) -> str:
        """The URL of an empty schema that nobody used before."""
        schema = f"t{next(self._names)}_{os.getpid()}"
        self.execute(f"CREATE SCHEMA {schema}")
        return f"{self.url}&search_path={schema}"

    @property
    def folder(self) -> Path:
        """Where its socket is."""
        return self._folder

    @property
    def url(self) -> str:
        """The server's URL; a search path may be added with `&search_path=`."""
        return f"postgresql://{USER}@/{DATABASE}?host={quote(str(self._folder), safe='')}"

    def execute(self, sql: str) -> str:
        """Run SQL with psql; what it printed."""
        return self._run("psql", "-X", "-q", "-A", "-t", "-h", str(self._folder), "-U", USER, "-d", DATABASE, "-c", sql)

    def _run(self, program: str, *arguments: str, seconds: float = 60) -> str:
        environment = {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(self._folder)}
        where = self._programs / program
        command = [str(where if where.exists() else program), *arguments]
        # The server inherits the handles of pg_ctl: a pipe would stay open for as long as it runs.
        with tempfile.TemporaryFile() as output:
            try:
                subprocess.run(
                    command,
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=self._folder,
                    timeout=seconds,
                    user=self._user and self._user.pw_uid,
                    group=self._user and self._user.pw_gid,
                    extra_groups=self._user and [],
                )
            except subprocess.CalledProcessError as error:
                output.seek(0)
                error.add_note(output.read().decode(errors="replace"))
                raise
            output.seek(0)
            return output.read().decode(errors="replace").strip()


def _unprivileged() -> pwd.struct_passwd | None:
    if os.getuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]
