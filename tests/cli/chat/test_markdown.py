import re

import pytest
from hypothesis import given, strategies as st
from wcwidth import wcswidth

from hermes_agent.cli.chat.markdown import render
from hermes_agent.cli.chat.text import plain
from tests.cli.chat.test_blocks import TEXTS


def lines(block: str, width: int = 40) -> list[str]:
    return plain(render(block, width)).split("\n")


@given(st.one_of(TEXTS, st.text(max_size=60)), st.integers(1, 100))
def test_everything_can_be_drawn_and_nothing_steers_the_terminal(text: str, width: int):
    drawn = plain(render(text, width))
    assert "\x1b" not in drawn
    assert "\r" not in drawn


@pytest.mark.parametrize("width", [20, 34, 60])
def test_words_wide_characters_and_tables_fit(width: int):
    blocks = (
        "日本語のテキストと絵文字 😀🎉 が混ざった行です。とても長い行なので折り返しが必要になります。",
        "- 日本語のテキストと絵文字が混ざった行です\n- two\n",
        "| Name | 数量 |\n|---|--:|\n| りんご りんご りんご りんご | 3 |\n",
        "> 日本語のテキストと絵文字が混ざった行です\n",
    )
    for block in blocks:
        assert all(wcswidth(line) <= width for line in lines(block, width))


def test_text_that_looks_like_html_is_text():
    assert lines("A Vec<String> and <b>bold</b>") == ["A Vec<String> and <b>bold</b>"]


def test_the_ends_of_lines_stay():
    assert lines("Roses are red\nviolets are blue") == ["Roses are red", "violets are blue"]


def test_an_address_is_always_shown():
    assert lines("[bank](https://evil.example)", 60) == ["bank (https://evil.example)"]


def test_numbers_of_a_list_go_on_where_it_was_cut():
    assert lines("3. three\n4. four\n") == [" 3. three", " 4. four"]


def test_code_has_colours_and_keeps_its_long_lines():
    long = "x = " + "1 + " * 30 + "1"
    drawn = render(f"```python\n{long}\n    y\n```\n", 20)

    assert plain(drawn).split("\n") == [long, "    y"]
    assert "\x1b[" in drawn


def test_code_that_is_not_closed_yet_or_of_an_unknown_language_is_code():
    assert lines("```python\ndef f():\n    pass") == ["def f():", "    pass"]
    assert lines("```klingon\nqapla\n```") == ["qapla"]


def test_no_line_ends_with_blanks():
    for block in ("> quoted\n", "- item\n", "```\nx   \n```", "| a | b |\n|---|---|\n| 1 |  |\n"):
        assert all(line == line.rstrip() for line in lines(block))


def test_tasks_have_boxes_and_rules_are_lines():
    assert plain(render("- [ ] open\n- [x] done\n  - [X] deep", 40)).split("\n") == [
        " ☐ open",
        " ☑ done",
        "    ☑ deep",
    ]
    assert plain(render("---", 10)) == "─" * 10


def test_cells_wrap_also_within_a_word():
    shown = plain(render("| a | b |\n|---|---|\n| inventory/pricing.py | " + "word " * 12 + "|", 30))

    assert "…" not in shown
    assert shown.replace(" ", "").replace("\n", "").count("word") == 12
    assert all(wcswidth(line) <= 30 for line in shown.split("\n"))


def test_links_are_for_the_terminal_and_their_addresses_can_be_read():
    shown = render("[a link](https://x.org/a) and https://x.org/b. ![pic](https://x.org/p.png)", 60)

    assert "\x1b]8;" in shown
    assert ";https://x.org/b\x1b" in shown
    assert "]8" not in plain(shown)
    expected = "a link (https://x.org/a) and https://x.org/b. [picture: pic]\n(https://x.org/p.png)"
    assert [line.rstrip() for line in plain(shown).split("\n")] == expected.split("\n")
    assert plain(render("<https://x.org/c>", 60)) == "https://x.org/c"


def test_code_has_no_colour_that_a_light_ground_swallows():
    code = '```python\n@cached\nclass A(int):\n    """Words."""\n    def f(self) -> str: return "x" or 1  # why\n```'
    codes = {code for found in re.findall(r"\x1b\[([0-9;]+)m", render(code, 80)) for code in found.split(";")}
    assert {"32", "35"} < codes <= {"0", "1", "2", "32", "35", "36", "49"}
