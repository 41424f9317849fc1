"""The format's own validator and ours say the same of every skill."""

from pathlib import Path

import pytest
import skills_ref

from hermes_agent.skills.format import BadSkill, read, text_of
from hermes_agent.skills.skill import BUNDLED

CASES = {
    "plain": "name: plain\ndescription: Does it.",
    "all-fields": "name: all-fields\ndescription: Does it.\nlicense: MIT\ncompatibility: Needs git\n"
    "allowed-tools: terminal read_file\nmetadata:\n  author: me\n  version: 1.10",
    "übung": "name: übung\ndescription: Letters of any script are letters.",
    "技能": "name: 技能\ndescription: Letters of any script are letters.",
    "007": "name: 007\ndescription: Digits alone.",
    "true": "name: true\ndescription: A word of YAML.",
    "x" * 64: f"name: {'x' * 64}\ndescription: As long as it may be.",
    "x" * 65: f"name: {'x' * 65}\ndescription: Too long.",
    "Upper": "name: Upper\ndescription: Does it.",
    "-begins": "name: -begins\ndescription: Does it.",
    "ends-": "name: ends-\ndescription: Does it.",
    "two--hyphens": "name: two--hyphens\ndescription: Does it.",
    "under_score": "name: under_score\ndescription: Does it.",
    "with space": "name: with space\ndescription: Does it.",
    "other": "name: another\ndescription: Not the name of its folder.",
    "nameless": "description: Does it.",
    "empty-name": "name:\ndescription: Does it.",
    "undescribed": "name: undescribed",
    "blank": "name: blank\ndescription: '  '",
    "long": f"name: long\ndescription: {'d' * 1024}",
    "longer": f"name: longer\ndescription: {'d' * 1025}",
    "compatible": f"name: compatible\ndescription: Does it.\ncompatibility: {'c' * 500}",
    "too-compatible": f"name: too-compatible\ndescription: Does it.\ncompatibility: {'c' * 501}",
    "listed": "name: listed\ndescription: Does it.\ncompatibility:\n  - git",
    "stranger": "name: stranger\ndescription: Does it.\nversion: 1.0",
    "map": "name: map\ndescription:\n  a: b",
    "list": "- name\n- description",
    "words": "nothing but words",
    "broken": "name: [broken\ndescription: Does it.",
    "colon": "name: colon\ndescription: One: two.",
}


def ours(folder: Path) -> list[str]:
    """What we hold against a skill, fields beyond the format included."""
    try:
        return list(read(text_of(folder / "SKILL.md"), folder.name).beyond)
    except BadSkill as error:
        return [str(error)]


@pytest.mark.parametrize("name", CASES)
def test_both_validators_agree(name: str, tmp_path: Path):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "SKILL.md").write_text(f"---\n{CASES[name]}\n---\n\nDo it.\n")

    assert bool(ours(folder)) == bool(skills_ref.validate(folder)), (ours(folder), skills_ref.validate(folder))


@pytest.mark.parametrize("text", ["", "No frontmatter.", "---\nname: open\ndescription: Never closed.\n"])
def test_both_refuse_what_has_no_frontmatter(text: str, tmp_path: Path):
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "SKILL.md").write_text(text)

    assert ours(folder)
    assert skills_ref.validate(folder)


@pytest.mark.parametrize("folder", sorted(BUNDLED.iterdir()), ids=lambda folder: folder.name)
def test_bundled_skills_are_good_for_both(folder: Path):
    assert ours(folder) == []
    assert skills_ref.validate(folder) == []
