"""A real IMAP server over a maildir, where Debian's dovecot is installed."""

import grp
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port

PATH = "/usr/sbin:/sbin:/usr/bin"
CONFIG = """
protocols = imap
listen = 127.0.0.1
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = {ssl}
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
default_internal_user = {internal}
default_internal_group = {internal_group}
default_login_user = {login}
mail_location = maildir:{folder}/mail
first_valid_uid = 1
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
passdb {{
  driver = passwd-file
  args = scheme=plain username_format=%u {folder}/users
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}
}}
"""


@dataclass(slots=True, kw_only=True)
class Dovecot:
    """A running server: `deliver` puts a mail into the inbox, as a mail transfer agent does."""

    folder: Path
    port: int
    tls_port: int
    uid: int
    gid: int
    process: subprocess.Popen[bytes]
    delivered: int = 0

    def deliver(self, content: bytes) -> None:
        self.delivered += 1
        staged = self.folder / "mail" / "tmp" / f"{time.time():.6f}.{self.delivered}.test"
        staged.write_bytes(content.replace(b"\r\n", b"\n"))
        os.chown(staged, self.uid, self.gid)
        staged.rename(self.folder / "mail" / "new" / staged.name)

    def seen(self) -> int:
        return sum("S" in name.partition(":2,")[2] for name in self.names())

    def names(self) -> list[str]:
        return [path.name for path in (self.folder / "mail" / "cur").iterdir()]

    def restart(self) -> None:
        self.stop()
        self.process = started(self.folder, self.port)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


def program() -> str | None:
    return shutil.which("dovecot", path=PATH)


@contextmanager
def dovecot(user: str, password: str) -> Iterator[Dovecot]:
    """Serve the mailbox of one user until the block ends."""
    root = os.geteuid() == 0
    who = pwd.getpwnam("nobody") if root else pwd.getpwuid(os.geteuid())
    folder = Path(tempfile.mkdtemp(prefix="dovecot"))
    folder.chmod(0o755)
    for name in ("mail", "mail/new", "mail/cur", "mail/tmp"):
        (folder / name).mkdir()
        os.chown(folder / name, who.pw_uid, who.pw_gid)
    (folder / "users").write_text(f"{user}:{password}\n")
    certificate(folder)
    port, tls_port = free_port(), free_port()
    (folder / "dovecot.conf").write_text(
        CONFIG.format(
            folder=folder,
            port=port,
            tls_port=tls_port,
            ssl="yes",
            user=who.pw_uid,
            group=who.pw_gid,
            internal="dovecot" if root else who.pw_name,
            internal_group="dovecot" if root else grp.getgrgid(who.pw_gid).gr_name,
            login="dovenull" if root else who.pw_name,
        )
    )
    server = Dovecot(
        folder=folder,
        port=port,
        tls_port=tls_port,
        uid=who.pw_uid,
        gid=who.pw_gid,
        process=started(folder, port),
    )
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def certificate(folder: Path) -> None:
    """A certificate for `localhost` that signs itself."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )


def started(folder: Path, port: int) -> subprocess.Popen[bytes]:
    path = program()
    assert path
    process = subprocess.Popen([path, "-F", "-c", str(folder / "dovecot.conf")], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        if greets(port):
            return process
        threading.Event().wait(0.05)
    process.kill()
    raise RuntimeError(f"dovecot did not start, see {folder}/log")


def greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as probe:
            return probe.recv(4) == b"* OK"
    except OSError:
        return False
