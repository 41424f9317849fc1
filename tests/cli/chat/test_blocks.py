import pytest
from hypothesis import given, strategies as st

from hermes_agent.cli.chat.blocks import FENCE, Blocks, closes, fence_of, is_code

LINES = st.sampled_from(
    [
        "words",
        "",
        " ",
        "- item",
        "* item",
        "  more of it",
        "1. one",
        "12) twelve",
        "```py",
        "```",
        "~~~~",
        "~~~",
        "    indented",
        "# Heading",
        "| a | b |",
        "|---|---|",
        "> quoted",
        "---",
        "日本語 😀",
        "- ```",
        "  ```",
        "\tx",
        "a\r",
    ]
)
TEXTS = st.lists(LINES, max_size=25).map("\n".join)


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces = []
    for size in sizes:
        pieces.append(text[:size])
        text = text[size:]
    return [*pieces, text]


def blocks_of(*pieces: str) -> list[str]:
    blocks = Blocks()
    done = [block for piece in pieces for block in blocks.feed(piece)]
    return done + blocks.close()


@given(st.one_of(TEXTS, st.text()), st.lists(st.integers(0, 12), max_size=30))
def test_the_blocks_together_are_the_text(text: str, sizes: list[int]):
    assert "".join(blocks_of(*cut(text, sizes))) == text


@given(TEXTS, st.lists(st.integers(0, 12), max_size=30))
def test_how_the_text_arrives_does_not_matter(text: str, sizes: list[int]):
    assert blocks_of(*cut(text, sizes)) == blocks_of(text)


@given(TEXTS, st.lists(st.integers(0, 12), max_size=30))
def test_what_was_given_and_the_tail_are_what_arrived(text: str, sizes: list[int]):
    blocks, given_out, arrived = Blocks(), "", ""
    for piece in cut(text, sizes):
        given_out += "".join(blocks.feed(piece))
        arrived += piece
        assert given_out + blocks.tail == arrived


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\nmore\n\ntwo\n", ["one\nmore\n\n", "two\n"]),
        ("# Head\nwords\n", ["# Head\n", "words\n"]),
        ("words\n# Head\n", ["words\n", "# Head\n"]),
        ("```py\na\n\nb\n```\nwords", ["```py\na\n\nb\n```\n", "words"]),
        ("words\n```\na\n```\n", ["words\n", "```\na\n```\n"]),
        ("````\n```\n````\nx", ["````\n```\n````\n", "x"]),
        ("~~~\n```\n~~~\nx", ["~~~\n```\n~~~\n", "x"]),
        ("- a\n\n- b\n\n  more\n\nwords\n", ["- a\n\n- b\n\n  more\n\n", "words\n"]),
        ("- a\n  ```\n\n  b\n  ```\n- c\n\nwords", ["- a\n  ```\n\n  b\n  ```\n- c\n\n", "words"]),
        ("1. a\n```\nx\n```\n2. b\n", ["1. a\n", "```\nx\n```\n", "2. b\n"]),
        ("Look:\n- a\n- b\n", ["Look:\n", "- a\n- b\n"]),
        ("in the year\n2019. That was\n", ["in the year\n2019. That was\n"]),
        ("| a |\n|---|\n| 1 |\n\nx", ["| a |\n|---|\n| 1 |\n\n", "x"]),
        ("\n\nwords\n\n\nmore", ["\n\nwords\n\n", "\nmore"]),
    ],
)
def test_a_block_ends_where_nothing_can_change_it_any_more(text: str, blocks: list[str]):
    assert blocks_of(text) == blocks


def test_a_paragraph_is_given_at_its_blank_line_and_not_before():
    blocks = Blocks()
    assert blocks.feed("one\nmore\n") == []
    assert blocks.tail == "one\nmore\n"
    assert blocks.feed("\n") == ["one\nmore\n\n"]
    assert blocks.tail == ""


def test_code_is_given_at_its_closing_fence():
    blocks = Blocks()
    assert blocks.feed("```py\nx = 1\n\ny = 2\n``") == []
    assert blocks.feed("`\n") == ["```py\nx = 1\n\ny = 2\n```\n"]


def test_a_fence_is_closed_by_one_of_its_kind_that_is_as_long():
    assert fence_of("~~~~ text\n", FENCE) == "~~~~"
    assert closes("  ~~~~~\n", "~~~~")
    assert not closes("~~~\n", "~~~~")
    assert not closes("````\n", "~~~~")


def test_code_is_told_by_its_first_line():
    assert is_code("\n```py\nx\n```\n")
    assert not is_code("words\n```\n")
    assert not is_code("``` `inline` ```")
