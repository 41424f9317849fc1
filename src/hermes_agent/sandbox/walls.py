"""Walls: the paths that commands and file tools may read or write, and the limits of a command."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import Literal

from hermes_agent.core.dataclass import dataclass

Access = Literal["write", "read", "none"]


def words(text: str) -> tuple[str, ...]:
    """The words of a table."""
    return tuple(text.split())


MOUNTS = "/proc/self/mountinfo"
# The system: what programs are made of. Not shown: /root, /home, /tmp, /run, /mnt, /media, /srv, and the data of
# services in /var.
SYSTEM = words(
    """
    /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /gnu /snap /sys/devices
    /var/lib/dpkg /var/lib/rpm /var/lib/texmf /var/lib/gems /var/lib/ghc /var/lib/ca-certificates-java
    /var/cache/fontconfig /home/linuxbrew/.linuxbrew /Library /System /Applications
    """
)
UNBOUNDED = words(
    """
    / /bin /boot /dev /etc /home /lib /lib64 /proc /run /sbin /sys /usr /usr/bin /usr/lib /usr/lib64 /usr/sbin /var
    """
)
"""Folders that hold the system, or all homes: none of them is a workspace."""
SYSTEM_CREDENTIALS = words(
    """
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssl/private
    /etc/pki/tls/private /etc/letsencrypt /etc/krb5.keytab /etc/security/opasswd /etc/ssh/ssh_host_rsa_key
    /etc/ssh/ssh_host_ecdsa_key /etc/ssh/ssh_host_ed25519_key /etc/wireguard /etc/openvpn /etc/ppp
    /etc/NetworkManager/system-connections /etc/wpa_supplicant /etc/docker/key.json /etc/kubernetes
    /etc/rancher /etc/mysql/debian.cnf /etc/cups/ssl
    /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/ipsec.secrets /etc/ipsec.d/private /etc/swanctl /etc/postfix/sasl
    /etc/exim4/passwd.client /etc/msmtprc /etc/ldap.secret /etc/pam_ldap.secret /etc/chrony/chrony.keys
    /etc/bind/rndc.key /etc/samba/private /etc/smbcredentials /etc/davfs2/secrets
    /etc/grafana /etc/vault.d /etc/boto.cfg /etc/s3cmd.cfg
    """
)
# Below the person's own home.
CREDENTIAL_FOLDERS = (
    *words(
        """
    .ssh .gnupg .aws .azure .kube .password-store .terraform.d .claude .codex .gemini .config/gcloud .config/gh
    .config/glab-cli .config/hub .config/op .config/rclone .config/sops .config/doctl .config/heroku
    .config/stripe .config/age .config/containers .config/github-copilot .local/share/keyrings
    .local/share/kwalletd .mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware
    .config/microsoft-edge .config/vivaldi .config/opera Library/Keychains Library/Cookies
    """
    ),
    "Library/Application Support/Google",
    "Library/Application Support/Firefox",
)
CREDENTIAL_FILES = words(
    """
    .netrc .pgpass .my.cnf .git-credentials .config/git/credentials .npmrc .yarnrc.yml .pypirc
    .docker/config.json .cargo/credentials .cargo/credentials.toml .m2/settings.xml .m2/settings-security.xml
    .gradle/gradle.properties .gem/credentials .composer/auth.json .terraformrc .vault-token .boto .s3cfg
    .cache/huggingface/token .huggingface/token .config/pip/pip.conf .pip/pip.conf .hermes/.env .claude.json
    .bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .sqlite_history
    .lesshst .local/share/fish/fish_history .Xauthority .ICEauthority
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """What is shown to a place's commands. Whatever no list names does not exist for them.

    `readable` may be read, `writable` written too, besides the session's workspace; `closed` is covered wherever it
    lies in them: of two paths that hold a file, the longer decides, and of two equal ones `closed`. A workspace in a
    closed folder is open only at or below `workspaces`, or below `shared`, where all profiles have workspaces.

    `person` is the home folder of the person, in whose place commands see one of the session's own. `caches` is the
    folder of caches, one for each workspace. `lends` is the only folder whose files can be lent to a
    command. `processes` and `memory_mb` limit all commands together where the kernel can, else each command; 0
    megabytes: no limit. `tmp_mb` limits each folder in memory, `session_mb` /tmp and ~ of
    a session, which are on the disk (0: no limit).
    """

    readable: tuple[str, ...] = SYSTEM
    writable: tuple[str, ...] = ()
    closed: tuple[str, ...] = SYSTEM_CREDENTIALS
    workspaces: str = ""
    shared: str = ""
    person: str = ""
    caches: str = ""
    lends: str = ""
    network: bool = False
    processes: int = 512
    memory_mb: int = 0
    tmp_mb: int = 512
    session_mb: int = 0
    __hash__ = object.__hash__  # the lists may be long; what is derived from them is kept for each object

    def access(self, path: str, *folders: str) -> Access:
        """What a command that works in these folders may do with the file or folder at `path`, a real path that may
        not exist."""
        named, own = _named(self), set(filter(self._opens, map(real, folders)))
        while True:
            if path in own:
                return "write"
            if path in named:
                return named[path]
            if path in ("", "/"):
                return "none"
            path = path.rpartition("/")[0] or "/"

    def opens(self, workspace: str) -> bool:
        """Whether this real path may be a workspace: not the home of Hermes, nor in a closed folder, nor a mount of
        one."""
        return self._opens(workspace) and not any(is_below(workspace, each) for each in mounted(self))

    def _opens(self, workspace: str) -> bool:
        named, path = _named(self), workspace
        own = [os.path.realpath(each) for each in (self.workspaces, self.shared) if each]
        while path not in named and path not in ("", "/", *own):
            path = path.rpartition("/")[0] or "/"
        return path in own or named.get(path) != "none"

    def shown(self, *folders: str) -> Mapping[str, Access]:
        """Each named path and its access, the folders of the work among them; real paths, parents first."""
        named = dict(_named(self))
        named.update(dict.fromkeys(filter(self.opens, map(real, folders)), "write"))
        named.update(dict.fromkeys(mounted(self), "none"))
        return dict(sorted(named.items(), key=lambda item: item[0].count("/") if item[0] != "/" else 0))


@cache
def real(workspace: str) -> str:
    """The real path of a workspace, which stays the one that it was first: who may write beside a workspace could put a
    link in its place."""
    return os.path.realpath(workspace)


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def mounted(walls: Walls) -> tuple[str, ...]:
    """The other paths at which mounts show what is closed, as they are now. Blocks for some microseconds."""
    try:
        with open(MOUNTS, "rb") as file:  # noqa: PTH123 - this runs before every command
            return _mounted(walls, file.read())
    except OSError:
        return ()


@lru_cache(8)
def _mounted(walls: Walls, table: bytes) -> tuple[str, ...]:
    """The same for a table of mounts, proc_pid_mountinfo(5): of each its device, what of it is mounted, and where."""
    rows = (os.fsdecode(line).split(" ", 5)[2:5] for line in table.splitlines())
    mounts = {_unescaped(at): (device, _unescaped(root)) for device, root, at in rows}
    _, _, free = _inside(walls.workspaces or os.devnull, mounts)
    found = dict[str, None]()
    for own, device, inside in (_inside(path, mounts) for path in walls.closed):
        for at, (other, root) in mounts.items():
            if other != device or at == own or is_below(root, free):
                continue
            part = inside.removeprefix(root).strip("/") if is_below(inside, root) else ""
            path = f"{at.rstrip('/')}/{part}".rstrip("/")
            if (part or is_below(root, inside)) and _mount_of(path, mounts) == at:
                found[path] = None
    return tuple(found)


def _inside(path: str, mounts: Mapping[str, tuple[str, str]]) -> tuple[str, str, str]:
    """The mount that a path is in, its device, and the path there."""
    path = os.path.realpath(path)
    own = _mount_of(path, mounts)
    device, root = mounts.get(own, ("", ""))
    return own, device, f"{root.rstrip('/')}/{path.removeprefix(own).strip('/')}"


def _mount_of(path: str, mounts: Collection[str]) -> str:
    """The mount that a path is in."""
    while path not in mounts and path != "/":
        path = path.rpartition("/")[0] or "/"
    return path


def _unescaped(name: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), name)


@cache
def _named(walls: Walls) -> Mapping[str, Access]:
    """Each named path; the last of these lists that names a path decides."""
    lists: tuple[tuple[Access, tuple[str, ...]], ...] = (
        ("read", walls.readable),
        ("write", walls.writable),
        ("none", walls.closed),
    )
    named = {os.path.realpath(path): access for access, paths in lists for path in paths}
    is_told = {path: path != "/" and named.get(_above(path, named)) == access for path, access in named.items()}
    return {path: access for path, access in named.items() if access == "none" or not is_told[path]}


def _above(path: str, named: Mapping[str, Access]) -> str:
    """The nearest of these paths that holds this one; `/` where none does."""
    while (path := path.rpartition("/")[0]) and path not in named:
        pass
    return path or "/"
