"""Another machine as a place, over one SSH connection that is kept open and re-established when it breaks."""

from __future__ import annotations

import asyncio
import getpass
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

import asyncssh

from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.sandbox.place import Place, PlaceFailed
from hermes_agent.sandbox.remote_place import RemotePlace
from hermes_agent.sandbox.settings import SshSettings
from hermes_agent.sandbox.sync.place import Copying, SyncedPlace
from hermes_agent.sandbox.sync.sides import Rules
from hermes_agent.sandbox.transport import Call, Unreachable, line
from hermes_agent.sandbox.walls import Walls

CONNECT_SECONDS = 20
ALIVE_SECONDS, ALIVE_TIMES = 15, 3  # a dead connection is noticed within 45 s
SSH_PORT, KNOWN_HOSTS = 22, "~/.ssh/known_hosts"
PAUSES = (0.2, 1.0, 3.0)  # between attempts to connect again
# What is asked of a machine first: where the account lives, and which start of the machine this is.
GREETING = 'echo "$HOME"; cat /proc/sys/kernel/random/boot_id 2>/dev/null || uptime -s'


def build(
    folder: Path,
    settings: SshSettings,
    walls: Walls,  # noqa: ARG001 - every place is built of the same; the account there is the wall
    env: Mapping[str, str],  # noqa: ARG001 - as above
    told: Mapping[str, str],
    *,
    home: str = "",
) -> Place:
    """Build the place; connects with the first command. Records are kept below `home` there (empty: the account's).
    Raises `PlaceFailed` where no machine is named."""
    if not settings.host:
        raise PlaceFailed("No machine is named: set `terminal.ssh.host`.")
    machine = Machine(settings, told, home)
    if not settings.sync:
        return RemotePlace("ssh", machine)
    if settings.folder and not settings.folder.startswith("/"):
        raise PlaceFailed("`terminal.ssh.folder` must be an absolute path.")
    rules = Rules(exclude=settings.exclude, max_bytes=settings.max_file_mb << 20, max_files=settings.max_files)
    copying = Copying(
        shell=machine,
        rules=rules,
        machine=f"{settings.user}@{settings.host}:{settings.port}",
        states=folder / "files",
        folder=settings.folder.rstrip("/"),
    )
    return SyncedPlace("ssh", machine, copying)


def _quoted(said: object) -> Quoted:
    """What the other machine, or the way to it, said."""
    return Quoted(text=str(said), origin=Origin.TOOL)


class Machine:
    """Implements `Ways` and `Transport` for one machine, the same for every group and folder. Creates session
    folders where missing."""

    def __init__(self, settings: SshSettings, told: Mapping[str, str], home: str) -> None:
        self.environment = dict(told)
        self._settings = settings
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()
        self._home = home
        self._boot = ""
        self._made: set[str] = set()

    async def to(self, group: str, folder: str = "") -> Machine:  # noqa: ARG002 - one machine for all groups
        connection = await self.connected()
        if folder and folder not in self._made:  # a command says what is wrong where it cannot be made
            await connection.run(f"mkdir -p -- {quote(folder)}", check=False)
            self._made.add(folder)
        return self

    async def near(self, folder: str) -> Machine:  # noqa: ARG002 - as above
        await self.connected()
        return self

    @property
    def records(self) -> str:
        """The folder of records; known after the first connection."""
        return f"{self._home}/.hermes-place/exec"

    async def call(self, arguments: Sequence[str], data: bytes = b"") -> Call:
        connection = await self.connected()
        try:
            process = await connection.create_process(line(arguments), encoding=None)
            with suppress(BrokenPipeError):  # it may have answered already without reading
                process.stdin.write(data)
                process.stdin.write_eof()
        except (OSError, asyncssh.Error) as error:
            raise Unreachable("The connection broke:", quoted=_quoted(error)) from error
        return MachineCall(process)

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes:
        """See `Shell`; retried once where the connection broke."""
        words = " ".join(map(quote, ["sh", "-c", script, "sync", *arguments]))
        for left in (1, 0):
            try:
                ended = await (await self.connected()).run(words, input=data, encoding=None, check=False)
            except (OSError, asyncssh.Error) as error:
                reason = str(error)
            else:
                if ended.exit_status == 0:
                    return _bytes(ended.stdout)
                if ended.exit_status is not None:
                    why = _bytes(ended.stderr).decode("utf-8", "replace").strip()[-300:] or ended.exit_status
                    host = self._settings.host
                    raise PlaceFailed(f"Files could not be copied to or from {host}:", quoted=_quoted(why))
                reason = "there was no answer"
            if left:
                await self._drop()
        raise Unreachable(f"The connection to {self._settings.host} broke:", quoted=_quoted(reason))

    async def restore(self) -> str:
        before = self._boot
        await self._drop()
        await self.connected()
        if self._boot == before:
            return ""
        return (
            f"{self._settings.host} was restarted meanwhile. Lost: whatever ran there. Kept: its files, the working "
            "directory and exported variables, the output of earlier commands."
        )

    async def connected(self) -> asyncssh.SSHClientConnection:
        """The connection, opened where there is none. Raises `PlaceFailed` with the reason."""
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._connect()
            return self._connection

    async def close(self) -> None:
        """Close the connection; commands go on."""
        await self._drop()

    async def _connect(self) -> asyncssh.SSHClientConnection:
        for pause in PAUSES:
            try:
                return await self._greet()
            except asyncssh.PermissionDenied as error:
                raise PlaceFailed(f"{self._settings.host} refused the key:", quoted=_quoted(error.reason)) from error
            except asyncssh.HostKeyNotVerifiable as error:
                raise await asyncio.to_thread(self._unverified) from error
            except (OSError, asyncssh.Error) as error:
                reason = error
                await asyncio.sleep(pause)
        raise PlaceFailed(f"{self._settings.host} cannot be reached:", quoted=_quoted(reason))

    @property
    def by_hand(self) -> str:
        """The command with which a person connects to it."""
        settings = self._settings
        words = ["ssh", *(["-p", str(settings.port)] if settings.port else [])]
        words += ["-i", _path(settings.key)] if settings.key else []
        words += ["-o", f"UserKnownHostsFile={_path(settings.known_hosts)}"] if settings.known_hosts else []
        return shlex.join([*words, f"{settings.user}@{settings.host}" if settings.user else settings.host])

    @property
    def names(self) -> tuple[str, str]:
        """Its name in the file of known hosts, and that file."""
        host, port = self._settings.host, self._settings.port
        return f"[{host}]:{port}" if port not in (0, SSH_PORT) else host, _path(
            self._settings.known_hosts or KNOWN_HOSTS
        )

    def _unverified(self) -> PlaceFailed:
        """Why its key is not taken, and what to do. Blocks."""
        host, (name, file) = self._settings.host, self.names
        known: Sequence[object] = ()
        with suppress(OSError, ValueError):
            known = asyncssh.match_known_hosts(file, host, "", self._settings.port or SSH_PORT)[0]
        if not known:
            hint = f"Connect once by hand: {self.by_hand}"
            return PlaceFailed(f"{host} is not known: {file} has no key of {name}.", hint=hint)
        return PlaceFailed(
            f"The key of {host} has CHANGED: it is not the one that {file} has for {name}. Somebody may have put "
            "another machine in its place.",
            hint="Find out why before anything else. If the machine was set up anew, forget the old key (ssh-keygen -f "
            f"{quote(file)} -R {quote(name)}) and connect once by hand: {self.by_hand}",
        )

    async def _greet(self) -> asyncssh.SSHClientConnection:
        settings = self._settings
        named: dict[str, Any] = {
            "port": settings.port or (),
            "username": settings.user or (),
            "client_keys": [_path(settings.key)] if settings.key else (),
            "known_hosts": _path(settings.known_hosts) if settings.known_hosts else (),
        }
        connection = await asyncssh.connect(
            settings.host,
            connect_timeout=CONNECT_SECONDS,
            keepalive_interval=ALIVE_SECONDS,
            keepalive_count_max=ALIVE_TIMES,
            **{name: value for name, value in named.items() if value != ()},
        )
        try:
            told = await connection.run(GREETING, check=False)
        except BaseException:
            connection.abort()
            raise
        home, _, boot = str(told.stdout).partition("\n")
        self._home = self._home or home or f"/home/{settings.user or getpass.getuser()}"
        self._boot = boot.strip()
        return connection

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
            await connection.wait_closed()


class MachineCall:
    """One script that runs on another machine over SSH; implements `Call`."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process

    async def line(self) -> str:
        read = await self._read(self._process.stdout.readline())
        if not read.endswith(b"\n"):
            raise Unreachable("The connection broke.")
        return read[:-1].decode(errors="surrogateescape")

    async def rest(self) -> bytes:
        content = await self._read(self._process.stdout.read())
        await self._process.wait_closed()
        if self._process.exit_status is None:
            raise Unreachable("The connection broke.")
        return content

    async def close(self) -> None:
        self._process.close()

    async def _read(self, reading: Any) -> bytes:  # noqa: ANN401 - one of two awaitables of the library
        try:
            content: bytes = await reading
        except (OSError, asyncssh.Error) as error:
            raise Unreachable("The connection broke:", quoted=_quoted(error)) from error
        return content


def _bytes(read: bytes | str | None) -> bytes:
    return read.encode() if isinstance(read, str) else read or b""


def _path(text: str) -> str:
    return str(Path(text).expanduser())
