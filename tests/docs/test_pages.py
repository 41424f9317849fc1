"""The pages hang together: every link leads somewhere, every page is in the table of contents."""

from pathlib import Path

import pytest

from hermes_agent.app.settings import Settings
from hermes_agent.host.yaml_check import check
from tests.architecture.source import ROOT
from tests.docs.pages import (
    DOCS,
    anchors,
    code,
    dead_links,
    links,
    out_of_step,
    page,
    prose,
    sections,
    table,
    yaml_blocks,
)

FILES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_to_a_page_and_a_heading(file: Path):
    assert dead_links(file) == []


def test_every_page_is_in_the_table_of_contents():
    there = {str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md")} - {"index.md"}
    assert out_of_step({link for link in links(page("index.md")) if not link.startswith("..")}, there) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_yaml_block_is_a_config_that_is_accepted(file: Path):
    problems = [check(block.encode(), Settings, file.name).problems for block in yaml_blocks(file.read_text())]
    assert [problem for each in problems for problem in each] == []


PAGE = """# Title

Text with `code` and a [link](other.md#part-two).

## `one` thing

| name | meaning |
|---|---|
| `a` | this \\| that |
| `b` | |

```text
## not a heading, `not code`, [no](link.md)
```

### below

More.

## two

End.
"""


def test_a_page_is_read_into_sections_that_know_no_code_blocks():
    found = sections(PAGE, 2)
    assert list(found) == ["one thing", "two"]
    assert "### below" in found["one thing"]
    assert "not a heading" not in prose(PAGE)
    assert prose(PAGE).count("\n") == PAGE.count("\n")


def test_a_table_is_found_by_the_head_of_its_first_column():
    assert table(PAGE, "name") == [("`a`", "this | that"), ("`b`", "")]
    assert table(PAGE, "nowhere") == []


def test_code_links_and_anchors_are_found():
    assert code(PAGE) == ["code", "one", "a", "b"]
    assert links(PAGE) == ["other.md#part-two"]
    assert anchors(PAGE) == {"title", "one-thing", "below", "two"}


def test_a_link_to_no_page_or_to_no_heading_is_found(tmp_path: Path):
    (tmp_path / "other.md").write_text("# Part two\n")
    file = tmp_path / "page.md"
    file.write_text("[a](other.md) [b](other.md#part-two) [c](other.md#three) [d](gone.md) [e](#here)\n\n# Here\n")
    assert dead_links(file) == ["other.md#three", "gone.md"]


def test_what_is_left_out_and_what_is_not_there_is_found():
    assert out_of_step(["a", "c"], ["a", "b"]) == [
        "b: is not in the manual",
        "c: is in the manual and not there",
    ]


def test_a_yaml_block_with_a_setting_that_does_not_exist_is_found():
    (block,) = yaml_blocks("```yaml\nmodle:\n  default: demo\n```\n")
    assert check(block.encode(), Settings, "page.md").problems
