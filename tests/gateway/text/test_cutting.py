"""Nothing is cut that must not be, and nothing is lost by cutting."""

import re
from time import process_time

import pytest
from hypothesis import example, given, settings, strategies as st

from hermes_agent.gateway.channel import Unit
from hermes_agent.gateway.text.cutting import cut, size_in
from hermes_agent.gateway.text.markdown import Block, closed, read

LINK = "[the manual](https://example.org/manual)"
FAMILY = "👩‍👩‍👧‍👦"
WALES = "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"


def test_a_short_text_is_one_piece():
    assert cut("Hello", 100) == ["Hello"]
    assert cut("\n \n", 100) == []


def test_a_text_is_cut_between_paragraphs_where_that_leaves_it_half_full():
    assert cut("aaaa aaaa\n\nbbbb bbbb\ncccc", 18) == ["aaaa aaaa", "bbbb bbbb\ncccc"]


def test_a_line_is_cut_between_words():
    assert cut("one two three four", 9) == ["one two", "three", "four"]


def test_a_word_that_is_too_long_is_cut_all_the_same():
    assert cut("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_a_code_block_goes_on_in_the_next_piece():
    text = "See:\n```python\n" + "\n".join(f"line_{number} = {number}" for number in range(10)) + "\n```\nDone."

    pieces = cut(text, 80)

    assert len(pieces) > 1
    for piece in pieces:
        assert closed(piece) == piece
        assert len(piece) <= 80
    joined = "\n".join(pieces)
    assert all(f"line_{number} = {number}" in joined for number in range(10))
    assert all(piece.startswith("```python") for piece in pieces[1:-1])


@pytest.mark.parametrize("whole", [LINK, "https://example.org/a/very/long/path?x=1", "`some code`", "**bold words**"])
@pytest.mark.parametrize("before", range(0, 40, 3))
def test_what_belongs_together_stays_together(whole: str, before: int):
    pieces = cut(f"{'w' * before} {whole} and more words after it", 48)

    assert any(whole in piece for piece in pieces)


@pytest.mark.parametrize(
    "sign", [FAMILY, "e\N{COMBINING ACUTE ACCENT}", "👍🏽", "🇩🇪", "❤\N{VARIATION SELECTOR-16}", WALES]
)
@pytest.mark.parametrize("shift", range(4))
def test_a_visible_character_is_never_cut(sign: str, shift: int):
    text = "x" * shift + sign * 30

    pieces = cut(text, 26)

    assert "".join(pieces) == text
    body = re.escape(sign)
    assert all(re.fullmatch(f"x*(?:{body})*", piece) for piece in pieces)


def test_a_tower_of_marks_is_cut_somewhere():
    text = "z" + "\N{COMBINING ACUTE ACCENT}" * 500

    assert "".join(cut(text, 100)) == text


def test_a_platform_counts_in_its_own_unit():
    assert size_in(Unit.UTF16)("a👍") == 3
    assert size_in(Unit.BYTES)("aé") == 3
    assert size_in(Unit.CHARACTERS)("a👍") == 2
    assert all(size_in(Unit.UTF16)(piece) <= 10 for piece in cut("👍" * 40, 10, size_in(Unit.UTF16)))


@pytest.mark.parametrize(
    "text",
    [
        "1. See:\n   ```python\n" + "   line = 1\n" * 30 + "   ```\n2. Then",
        "````markdown\n" + "# Doc\n```py\nprint(1)\n```\n" * 10 + "````\nAfter",
        "~~~\n" + "```\ncode\n" * 20 + "~~~",
        "```" + "words " * 9 + "\n" + "code\n" * 50 + "```",
        "```py\n" + "code\n" * 18 + "```\nAfter",
    ],
)
@pytest.mark.parametrize("longest", range(90, 110))
def test_a_block_of_any_form_goes_on_as_what_it_is(text: str, longest: int):
    pieces = cut(text, longest)

    assert all(closed(piece) == piece and len(piece) <= longest for piece in pieces)
    lines = [line for piece in pieces for each in read(piece) if isinstance(each, Block) for line in each.lines]
    (whole,) = [each for each in read(text) if isinstance(each, Block)]
    assert lines == list(whole.lines)


def test_words_that_fill_a_piece_are_cut_all_the_same():
    text = "```" + "x" * 300 + "\n" + "code\n" * 50 + "```"

    assert "".join(cut(text, 100)).count("code") == 50


CODE_LINES = st.sampled_from(
    [
        "def größe(): return '日本語のテキスト'",
        f"    family = '{FAMILY}' * 3  # {WALES} 👍🏽🇩🇪",
        "",
        "```",
        "~~~~",
        "   ```python",
        "https://example.org/a/very/long/path?query=1&more=2",
        "see [the manual](https://example.org/manual)",
        "x" * 400,
        "\tif a < b && c > d: `e` * f _g_ ~~h~~ $i^2$ | j |",
        "e\N{COMBINING ACUTE ACCENT}" * 50,
    ]
)
FENCES = st.sampled_from(["`````", "`````python", "~~~~~ text", "  `````rust"])


@pytest.mark.parametrize(
    ("longest", "unit"), [(4096, Unit.UTF16), (2000, Unit.CHARACTERS), (3900, Unit.BYTES), (70, Unit.UTF16)]
)
@settings(max_examples=25)
@given(st.lists(CODE_LINES, min_size=1, max_size=40), FENCES, st.integers(1, 25))
def test_a_long_block_of_code_is_all_there(longest: int, unit: Unit, lines: list[str], fence: str, times: int):
    size, marks = size_in(unit), fence.strip()[:5]
    code = lines * times
    text = f"Here is **all** of it:\n\n{fence}\n" + "\n".join(code) + f"\n{marks}\n\nDone, see {LINK}."

    pieces = cut(text, longest, size)

    assert all(size(piece) <= longest and closed(piece) == piece for piece in pieces)
    there = [line for piece in pieces for each in read(piece) if isinstance(each, Block) for line in each.lines]
    assert "".join(there) == "".join(code)
    assert LINK in pieces[-1]
    whole = (FAMILY, WALES, "👍🏽", "🇩🇪", "e\N{COMBINING ACUTE ACCENT}")
    assert all(sum(piece.count(each) for piece in pieces) == text.count(each) for each in whole)


@pytest.mark.parametrize("longest", range(40, 90))
def test_the_marks_that_end_a_block_stay_together(longest: int):
    text = "Here it is:\n\n`````\n" + "\n".join(["```"] * 8) + "\n`````\n\nDone."

    pieces = cut(text, longest)

    assert all(closed(piece) == piece for piece in pieces)
    there = [line for piece in pieces for each in read(piece) if isinstance(each, Block) for line in each.lines]
    assert there == ["```"] * 8


@given(st.text(alphabet=st.sampled_from("ab `\n[](*x👍é~"), max_size=300), st.integers(20, 60))
@example(" [[[[[[[[`[[[[[[[[👍`", 20)  # Before the code that is not cut there is a space alone.
def test_every_piece_fits_and_every_letter_stays(text: str, longest: int):
    size = size_in(Unit.UTF16)

    pieces = cut(text, longest, size)

    assert all(piece.strip() for piece in pieces)
    assert all(size(piece) <= longest for piece in pieces)
    assert "".join(pieces).count("a") == text.count("a")


def test_a_text_of_links_that_are_none_takes_no_time():
    began = process_time()

    assert "".join(cut("![" * 40_000, 16_000)) == "![" * 40_000

    assert process_time() - began < 5


@pytest.mark.parametrize("unit", ["`", "~", "~~~", "``````", "```\n", " ", "    ```\n", "`````\n```\n"])
def test_a_text_of_marks_alone_is_cut_in_proportion_to_its_length(unit: str):
    size, began = size_in(Unit.UTF16), process_time()

    pieces = cut(f"a{unit * 50_000}"[:50_000], 4096, size)

    assert process_time() - began < 5.0  # Half a minute where a cut comes after each sign, more while it is measured.
    assert all(size(piece) <= 4096 for piece in pieces)


@pytest.mark.parametrize("unit", ["`a`\u200d", "[a](b)\u200d", "`a` \u0301", "https://a\u0301"])
def test_a_long_text_that_may_be_cut_nowhere_takes_no_time(unit: str):
    text, began = (unit * 20_000)[:50_000], process_time()

    assert len(cut(text, 40_000)) == 2

    assert process_time() - began < 4.0
