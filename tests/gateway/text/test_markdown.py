"""Code blocks are found as Markdown has them: of more marks, of tildes, within each other, in lists."""

import itertools
from collections.abc import Callable
from math import isqrt
from time import process_time

import pytest

from hermes_agent.gateway.access_control import harmless
from hermes_agent.gateway.channel import Unit
from hermes_agent.gateway.discord.events import plain as of_discord
from hermes_agent.gateway.email.words import visible_text, without_quotes
from hermes_agent.gateway.slack.events import mrkdwn, plain
from hermes_agent.gateway.telegram.writing import formatted
from hermes_agent.gateway.text.cutting import cut, size_in
from hermes_agent.gateway.text.markdown import (
    HARMLESS,
    Block,
    Dialect,
    closed,
    heading,
    html,
    open_at_end,
    opening,
    plainest,
    read,
    rendered,
)
from hermes_agent.gateway.text.readable import plain_formula, readable
from tests.growth import grows

NESTED = "````markdown\n# Doc\n```python\nprint(1)\n```\nmore\n````\nAfter"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```\na\n```", ("a",)),
        ("```py\na\n~~~\n``\n```", ("a", "~~~", "``")),
        ("~~~ py x=1\n```\na\n```\n~~~~", ("```", "a", "```")),
        (NESTED, ("# Doc", "```python", "print(1)", "```", "more")),
        ("1. See:\n   ```\n   a\n     b\n   ```\n2. Then", ("a", "  b")),
        ("```\n    ```\n```", ("    ```",)),
        ("```\na\n```python\n```", ("a", "```python")),
        ("```\r\na\n```\r", ("a",)),
    ],
)
def test_the_lines_of_a_block(text: str, inside: tuple[str, ...]):
    (block,) = [piece for piece in read(text) if isinstance(piece, Block)]

    assert block.bare == inside
    assert block.ended
    assert open_at_end(text) is None
    assert closed(text) == text


@pytest.mark.parametrize("line", ["```code``` in a line", "``", "text ```", "- ```py"])
def test_what_is_no_beginning(line: str):
    assert opening(line) is None


def test_a_block_that_has_no_end_is_given_one():
    assert closed("See\n  ````py\n  a\n  ```\n") == "See\n  ````py\n  a\n  ```\n  ````"


def test_nothing_is_lost_by_reading():
    text = f"One\n{NESTED}\n\n~~~\nopen"

    assert "\n".join(piece if isinstance(piece, str) else piece.written for piece in read(text)) == text


def test_blocks_become_the_plainest():
    assert plainest(NESTED) == (f"```markdown\n# Doc\n{HARMLESS}python\nprint(1)\n{HARMLESS}\nmore\n```\nAfter")
    assert plainest("1. See\n   ~~~ python title=x\n   a\n  b\n   ~~~\nend") == "1. See\n```python\na\nb\n```\nend"
    assert plainest("~~~\nopen") == "```\nopen"


def test_words_that_fill_a_line_are_not_said_again():
    fence = opening(f"```{'x' * 100}")
    assert fence is not None
    assert fence.again == "```"


LONG = 12_000
SIGNS = ["`", "*", "_", "~", "[", "](", ")", "$", "\\", "\\(", "\\[", "\\sqrt[", "{", "|", "-", "#", " ", "\n", "a"]
TAGS = [
    "<",
    "<a",
    "<a ",
    "<p>",
    "<b><p>",
    "<!--",
    "<a b='",
    "</",
    "&",
    "&#",
    "<div></x>",
    "<@1",
    "<a:",
    "\u0301",
    "> ",
    "@a",
]
LONGER = ["```", "~~", "**", "__", "$$", "[a](http://", "\\begin{align}", "\\frac{", "\\\\[", "> ", "# ", "\t", "\0"]
UNITS = [
    *SIGNS,
    *TAGS,
    *LONGER,
    " **a",
    " ~~a",
    " __a",
    *map("".join, itertools.permutations(["$", "|", " ", "*", "["], 2)),
]
ENDS = [("", ""), ("", "\nx!"), ("# a", "b"), ("| a | b |\n|---|---|\n|", "|")]
WRITERS: dict[str, Callable[[str], object]] = {
    "readable": readable,
    "plainest": plainest,
    "closed": closed,
    "cut": lambda text: cut(text, 1000, size_in(Unit.UTF16)),
    "plain_formula": plain_formula,
    "formatted": formatted,
    "mrkdwn": mrkdwn,
    "plain of Slack": lambda text: plain(text, "U1"),
    "plain of Discord": lambda text: of_discord(text, "1", {}),
    "harmless": harmless,
    "without_quotes": without_quotes,
    "visible_text": visible_text,
}
"""Everything that reads or writes a text from outside; `apart` and the contract of channels hold the rest."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_text_that_somebody_made_for_it_takes_no_more_time_than_its_length_does(write: Callable[[str], object]):
    def made(unit: str, head: str, tail: str) -> Callable[[int], object]:
        return lambda size: write(head + (unit * size)[:size] + tail)

    hostile = {(unit, *ends): made(unit, *ends) for unit in UNITS for ends in ENDS}
    ticks = {("ticks", "", ""): lambda size: write("\\" + " ".join("`" * n for n in range(1, isqrt(2 * size))))}
    slow = [parts for parts, work in (hostile | ticks).items() if grows(work, LONG)]

    assert slow == []


@pytest.mark.parametrize(
    ("line", "words"),
    [("# a", "a"), ("## a b ##", "a b"), ("# #", "#"), ("#a", ""), ("####### a", ""), ("#", ""), ("# C#", "C")],
)
def test_a_heading_is_its_words(line: str, words: str):
    assert heading(line) == words


def test_a_row_longer_than_its_head_keeps_its_words():
    assert readable("| a | b |\n|---|---|\n| 1 | 2 | 3 |") == "```\na  b\n─  ─────\n1  2 | 3\n```"


def test_signs_of_nothing_are_no_code():
    assert readable("$\x005\0") == "$5"


PLAIN = Dialect(escape=str, code=str.upper, link=lambda shown, address: f"{shown} <{address}>")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**a *b* c** ~~d~~", "*a _b_ c* ~d~"),
        ("# A `b`\n> c\n- d", "*A `B`*\n> c\n• d"),
        ("[a](b) [c]()", "a <b> c"),
        ("```py\nx\n```\nnever `closed", "```\nX\n```\nnever `closed"),
    ],
)
def test_a_record_says_how_it_looks(text: str, shown: str):
    assert rendered(text, PLAIN) == shown


def test_markdown_becomes_html_without_tags_of_its_own_and_pictures_of_others():
    made = html("**a** <script>x</script> ![p](https://x.test/p.png)\n\n| a |\n|---|\n| b |")

    assert "<strong>a</strong>" in made
    assert "<table>" in made
    assert "<script>" not in made
    assert "<img" not in made


@pytest.mark.parametrize(
    "unit", ["*", "_", "[", "](", "[a](", "`", "<", "&", "> ", "- ", "|-|\n", "![", "***a ", "\\", "~"]
)
def test_a_text_that_somebody_made_for_it_takes_no_time(unit: str):
    began = process_time()

    html((unit * 20_000)[:20_000])

    assert process_time() - began < 3
