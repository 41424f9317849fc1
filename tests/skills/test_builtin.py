"""The skills that come with the program keep the rules that they are there to show."""

import pytest

from hermes_agent.skills.format import read, text_of
from hermes_agent.skills.skill import BUNDLED

FOLDERS = sorted(path.name for path in BUNDLED.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", FOLDERS)
def test_a_bundled_skill_is_a_good_one(name: str):
    skill = read(text_of(BUNDLED / name / "SKILL.md"), name)

    assert skill.beyond == ()
    assert skill.ours.category
    assert "Use it " in skill.description
    assert len(skill.body) < 4_000


def test_the_set_is_small():
    assert 12 <= len(FOLDERS) <= 15
