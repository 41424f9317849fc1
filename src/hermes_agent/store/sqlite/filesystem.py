"""Which file system a path lies on: SQLite's locks cannot be trusted on a network's."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.core.errors import DatabaseUnreachable

# Names as /proc/self/mounts gives them; fuse ones carry their program after a dot.
NETWORK = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "smb",
        "9p",
        "afs",
        "ncpfs",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "davfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.davfs",
        "fuse.gcsfuse",
        "fuse.juicefs",
        "fuse.blobfuse",
    )
)
MOUNTS = Path("/proc/self/mounts")


def refuse_network(path: Path, mounts: Path = MOUNTS) -> None:
    """Raise `DatabaseUnreachable` where `path` lies on a network file system. Without a list of mounts (not Linux),
    pass."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = file_system(path, table)
    if kind in NETWORK:
        raise DatabaseUnreachable(
            f"{path} is on a network file system ({kind}), where SQLite loses data. "
            "Use a local disk (HERMES_HOME) or PostgreSQL (store.url)."
        )


def file_system(path: Path, table: str) -> str:
    """The type of the mount that `path` lies on, "" if none is listed; the later of two mounts at one place counts."""
    text, best, kind = str(path), "", ""
    for line in table.splitlines():
        fields = line.split(" ")
        place = fields[1] if "\\" not in fields[1] else _unescape(fields[1])
        if len(place) >= len(best) and (text == place or text.startswith(place.rstrip("/") + "/")):
            best, kind = place, fields[2]
    return kind


def _unescape(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
