"""What the README and the manual show works as shown, unless `<!-- not run: why -->` stands before it."""

from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.docs.blocks import blocks_of, call, commands_of, fits, provide_command, run

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
BLOCKS = [block for page in PAGES for block in blocks_of(str(page.relative_to(ROOT)), page.read_text())]
WORDS_OF_A_REASON = 2


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.reason is None], ids=str)
def test_a_block_works_as_shown(block, tmp_path: Path):
    assert run(block, tmp_path) == []


def test_the_first_command_of_the_readme_works_in_the_checkout_too(tmp_path: Path):
    """A newcomer stands in the program's own source, where more is asked than elsewhere."""
    provide_command(tmp_path)
    command, expected = next(
        pair
        for block in BLOCKS
        if block.page == "README.md"
        for pair in commands_of(block.text)
        if " -m demo " in pair[0]
    )
    code, output = call(command.replace("./hermes", "hermes"), tmp_path, where=ROOT)
    first, _, output = output.partition("\n")
    assert first.startswith(f"{ROOT} is not trusted")  # Its AGENTS.md speaks to the agent, and nobody can be asked.
    assert (code, fits(expected, output)) == (0, True), output


def test_a_block_that_is_not_run_says_why():
    assert [
        str(block) for block in BLOCKS if block.reason is not None and len(block.reason.split()) < WORDS_OF_A_REASON
    ] == []


PAGE = """# Title

```python
print(1)
```

<!-- not run: it takes an hour -->

```console
$ ./check
```

```text
not code
```
"""


def test_blocks_are_found_with_their_lines_and_reasons():
    found = [(str(block), block.language, block.text, block.reason) for block in blocks_of("a.md", PAGE)]
    assert found == [
        ("a.md:4", "python", "print(1)\n", None),
        ("a.md:10", "console", "$ ./check\n", "it takes an hour"),
    ]


def test_a_console_block_is_commands_with_what_they_print():
    assert commands_of("$ echo a\na\n$ true\n$ seq 2\n1\n2\n") == [("echo a", "a\n"), ("true", ""), ("seq 2", "1\n2\n")]


def test_dots_stand_for_anything():
    assert fits("took ... s\n", "took 0.31 s\n")
    assert not fits("took ... s\n", "took 0.31 minutes\n")


@pytest.mark.parametrize(
    "block",
    [
        "```python\nraise ValueError('no')\n```",
        "```python\nimport no_such_module\n```",
        "```console\n$ exit 3\n```",
        "```console\n$ echo one\ntwo\n```",
    ],
)
def test_a_block_that_does_not_work_is_found(block: str, tmp_path: Path):
    (only,) = blocks_of("a.md", block)
    assert len(run(only, tmp_path)) == 1


def test_a_block_that_works_is_accepted(tmp_path: Path):
    (only,) = blocks_of("a.md", '```console\n$ echo one two\none ...\n$ test -n "$HERMES_HOME"\n```')
    assert run(only, tmp_path) == []
