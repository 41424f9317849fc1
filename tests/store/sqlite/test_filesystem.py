"""Network file systems are refused by name."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.store.sqlite.filesystem import file_system, refuse_network

TABLE = """\
/dev/vda / ext4 rw 0 0
proc /proc proc rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local ext4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
tmpfs /home/local tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x.db", "ext4"),
        ("/home/ann/x.db", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/x.db", "ext4"),
        ("/home/local/x.db", "tmpfs"),
        ("/mnt/my share/x.db", "cifs"),
    ],
)
def test_the_nearest_and_latest_mount_counts(path: str, kind: str):
    assert file_system(Path(path), TABLE) == kind


def test_a_database_on_the_network_is_refused(tmp_path: Path):
    mounts = tmp_path / "mounts"
    mounts.write_text(TABLE, encoding="utf-8")

    with pytest.raises(DatabaseUnreachable, match=r"nfs4.*PostgreSQL"):
        refuse_network(Path("/home/ann/hermes.db"), mounts)
    refuse_network(Path("/var/hermes.db"), mounts)


def test_where_mounts_cannot_be_told_nothing_is_refused(tmp_path: Path):
    refuse_network(Path("/home/ann/hermes.db"), tmp_path / "nothing")
    assert file_system(Path("/x"), "") == ""
