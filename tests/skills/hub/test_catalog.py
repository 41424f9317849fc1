"""What may be among the files of a skill, told with every reason at once."""

import pytest

from hermes_agent.skills.hub.catalog import LINK, MODULE, select_files
from hermes_agent.skills.hub.git import HubError, TreeEntry


def entry(path: str, kind: str = "100644", size: int = 1) -> TreeEntry:
    return TreeEntry(path=path, kind=kind, oid="0" * 40, size=size)


def test_hidden_files_stay_behind():
    entries = [entry("a/SKILL.md"), entry("a/.github/x", LINK), entry("a/b/.DS_Store"), entry("a/b/c.md")]
    assert list(select_files(entries, "a")) == ["SKILL.md", "b/c.md"]


def test_every_reason_is_told():
    entries = [
        entry("x", LINK),
        entry("y", MODULE),
        entry("Z.md"),
        entry("z.md"),
        entry("large", size=2 << 20),
        *[entry(f"many/{number}", size=1 << 20) for number in range(300)],
    ]
    with pytest.raises(HubError, match=r"no SKILL\.md; it has 305 files.*bytes, at most.*link.*and 2 more"):
        select_files(entries, "")


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "con:", "x" * 201, "/".join("abcdefghi"), "a\u202eb", "what?"])
def test_names_that_are_none_everywhere_are_refused(name: str):
    with pytest.raises(HubError, match="is not a name for a file"):
        select_files([entry("SKILL.md"), entry(name)], "")


def test_letters_that_look_alike_to_a_file_system_are_one_name():
    with pytest.raises(HubError, match="are one name"):
        select_files([entry("SKILL.md"), entry("caf\u00e9.md"), entry("cafe\u0301.md")], "")
