"""SKILL.md is read by the rules of its format, and what is wrong with one is said."""

from pathlib import Path

import pytest

from hermes_agent.skills.format import BadSkill, name_problems, problems, read, strangers, text_of
from tests.skills.shelf import skill_text

OURS = """license: MIT
compatibility: Needs git
allowed-tools: terminal read_file
version: 1.10
metadata:
  author: somebody
  hermes:
    category: work
    tags: [a, b]
    platforms: linux, macos
    parameters:
      - name: target
        type: text
        default: main
    required_environment_variables:
      - name: GITHUB_TOKEN
        prompt: Which?
    unknown: kept
"""


def test_a_skill_is_its_frontmatter_and_its_body():
    skill = read(skill_text("ship-it", "Ships. Use it to ship.", "# Ship\n\n1. Push.", OURS), "ship-it")

    assert (skill.name, skill.description, skill.body) == ("ship-it", "Ships. Use it to ship.", "# Ship\n\n1. Push.")
    assert (skill.license, skill.allowed_tools, skill.beyond) == ("MIT", ("terminal", "read_file"), ("version",))
    assert (skill.ours.category, skill.ours.platforms) == ("work", ("linux", "macos"))
    assert skill.ours.parameters[0].default == "main"
    assert skill.ours.required_environment_variables == ("GITHUB_TOKEN",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no frontmatter", "does not begin with frontmatter"),
        ("---\nname: a\n", "never closed"),
        ("---\nname: [a\n---\n", "not YAML in line 3"),
        ("---\n- a\n---\n", "must be a map"),
        ("---\ndescription: d\n---\n", "`name` is missing"),
        ("---\nname: a\n---\n", "`description` is missing"),
        (skill_text("a", "d" * 1025), "1,025 characters"),
        (skill_text("a", more="compatibility: " + "c" * 501 + "\n"), "`compatibility` has 501"),
        (skill_text("a", more="compatibility: [x]\n"), "must be a text"),
        (skill_text("a", more="allowed-tools: {a: b}\n"), "`allowed-tools` must be"),
        (skill_text("a", more="metadata: x\n"), "`metadata` must be a map"),
        (skill_text("a", more="metadata: {hermes: {parameters: [{type: text}]}}\n"), "metadata.hermes"),
        (skill_text("b"), "The folder `a` must have the skill's name"),
        ("---\n" + "[" * 5000 + "\n---\n", "frontmatter"),
        ("x" * 200_000, "200,000 characters"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str):
    with pytest.raises(BadSkill, match=said.replace("[", r"\[")):
        read(text, "a")


@pytest.mark.parametrize("name", ["a", "pdf-tools", "a1", "größe", "技能", "x" * 64])
def test_good_names(name: str):
    assert name_problems(name) == []


@pytest.mark.parametrize("name", ["A", "-a", "a-", "a--b", "a_b", "a b", "x" * 65, "../a", "a/b", "é!"])
def test_bad_names(name: str):
    assert name_problems(name) != []


def test_a_field_beyond_the_format_is_named_and_no_problem():
    fields = {"name": "a", "description": "d", "version": "1"}

    assert (problems(fields), strangers(fields)) == ([], ("version",))


def test_a_file_that_leads_out_is_not_read(tmp_path: Path):
    (tmp_path / "secret").write_text(skill_text("a"))
    (tmp_path / "a").mkdir()
    (tmp_path / "a/SKILL.md").symlink_to(tmp_path / "secret")

    with pytest.raises(BadSkill, match="leads out"):
        text_of(tmp_path / "a/SKILL.md")


def test_a_file_that_is_no_text_is_not_read(tmp_path: Path):
    (tmp_path / "SKILL.md").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(BadSkill, match="not UTF-8"):
        text_of(tmp_path / "SKILL.md")
    with pytest.raises(BadSkill, match="not a file"):
        text_of(tmp_path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path):
    (tmp_path / "SKILL.md").write_bytes(b"x" * 400_005)

    with pytest.raises(BadSkill, match="400,005 bytes"):
        text_of(tmp_path / "SKILL.md")
