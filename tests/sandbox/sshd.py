"""Debian's openssh-server on a loopback port, with keys made for the tests."""

from __future__ import annotations

import atexit
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from hermes_agent.sandbox.settings import SshSettings
from tests.ports import free_port

CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxSessions 100
MaxStartups 100
SetEnv SHLVL=2
"""
# The last line: bash reads the account's ~/.bashrc before each command of sshd, but not as the shell of a shell; what
# somebody has there is no part of what is tested and measured.


class NoServer(Exception):
    """Why there is none here."""


@cache
def server() -> SshSettings:
    """The way to it. Raises `NoServer`."""
    program = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")
    if program is None:
        raise NoServer("sshd is not installed (apt-get install openssh-server)")
    folder = Path(tempfile.mkdtemp(prefix="hermes-sshd-"))
    for name in ("host", "key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    port = free_port()
    (folder / "config").write_text(CONFIG.format(port=port, folder=folder))
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [program, "-D", "-e", "-f", str(folder / "config")], stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    log.close()
    atexit.register(stop, process, folder)
    while True:
        if process.poll() is not None:
            raise NoServer((folder / "log").read_text().strip().rpartition("\n")[2])
        if answers(port):
            break
    return SshSettings(
        host="127.0.0.1",
        port=port,
        user=getpass.getuser(),
        key=str(folder / "key"),
        known_hosts=str(folder / "known"),
    )


def answers(port: int) -> bool:
    """Whether it is an SSH server that listens there."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as trial:
            return trial.recv(4) == b"SSH-"
    except OSError:
        return False


def stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.terminate()
    process.wait(10)
    shutil.rmtree(folder, ignore_errors=True)
