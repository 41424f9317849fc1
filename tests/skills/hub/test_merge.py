"""Three versions of a skill become one, file by file."""

import pytest

from hermes_agent.skills.depot.files import Content
from hermes_agent.skills.hub.errors import HubError
from hermes_agent.skills.hub.merge import Merged, merge
from tests.skills.hub.origin import VARIABLES
from tests.skills.shelf import skill_text

SKILL = skill_text("tea")


def files(**texts: str | bytes) -> dict[str, Content]:
    every = {"SKILL.md": SKILL, **texts}
    return {name: Content(content=text.encode() if isinstance(text, str) else text) for name, text in every.items()}


async def merged(base: dict[str, Content], ours: dict[str, Content], theirs: dict[str, Content]) -> Merged:
    return await merge("tea", base, ours, theirs, VARIABLES)


async def test_what_one_side_alone_did_is_kept():
    base = files(a="1", b="1", gone="1")
    ours = files(a="2", b="1", mine="1", gone="1")
    theirs = files(a="1", b="2", new="1")

    done = await merged(base, ours, theirs)
    assert done.changes == {"b": b"2", "new": b"1", "gone": None}
    assert done.conflicts == ()


async def test_the_same_change_on_both_sides_is_no_conflict():
    assert (await merged(files(a="1"), files(a="2"), files(a="2"))).changes == {}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "said"),
    [
        ({"a": "1"}, {}, {"a": "2"}, "You removed it"),
        ({"a": "1"}, {"a": "2"}, {}, "it was removed at its source"),
        ({"a": "1"}, {"a": b"\0\1"}, {"a": b"\0\2"}, "it is not text"),
        ({}, {"a": "mine\n"}, {"a": "theirs\n"}, "<<<<<<< yours\nmine\n"),
    ],
)
async def test_what_cannot_be_decided_is_a_conflict(base: dict, ours: dict, theirs: dict, said: str):
    done = await merged(files(**base), files(**ours), files(**theirs))
    assert (done.conflicts[0].file, said in done.conflicts[0].text) == ("a", True)


async def test_a_merge_that_gives_no_skill_is_a_conflict():
    # Each side adds the field for itself; the merge has it twice, or a name that is not the folder's.
    theirs = {**files(), "SKILL.md": Content(content=skill_text("coffee").encode())}
    done = await merged(files(), files(), theirs)
    assert "is not a skill" in done.conflicts[0].text
    gone = {name: each for name, each in files().items() if name != "SKILL.md"}
    assert "removed at its source" in (await merged(files(), files(), gone)).conflicts[0].text


async def test_without_git_there_is_a_sentence():
    with pytest.raises(HubError, match="git, which is not installed"):
        await merge("tea", files(a="1"), files(a="2"), files(a="3"), {"PATH": "/nonexistent"})
