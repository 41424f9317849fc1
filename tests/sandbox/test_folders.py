"""A group stays in the folder where it began, for every process."""

from pathlib import Path

from hermes_agent.sandbox.folders import GroupFolders


def test_a_group_stays_where_it_began(tmp_path: Path):
    assert GroupFolders(tmp_path / "groups").of("g") == ""

    assert GroupFolders(tmp_path / "groups").of("g", "/work") == "/work"

    assert GroupFolders(tmp_path / "groups").of("g") == "/work"
    assert GroupFolders(tmp_path / "groups").of("g", "/other") == "/work"
