"""A page of a file within limits, whatever the file is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.tools.files.reading import MOST_BYTES, READ_WHOLE, Page, missing, read_page
from tests.tools.bench import words


def page(path: Path, offset: int = 1, limit: int = 2000) -> str:
    return words(read_page(path, Page(shown=path.name, offset=offset, limit=limit)).answer)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


def test_lines_are_numbered(file: Path) -> None:
    file.write_text("one\n\nthree\n")

    assert page(file) == "1|one\n2|\n3|three"


def test_a_page_says_how_to_go_on(file: Path) -> None:
    file.write_text("".join(f"{number}\n" for number in range(1, 11)))

    assert page(file, 4, 2) == "4|4\n5|5\n[lines 4-5 of 10; go on with offset=6]"
    assert page(file, 9, 2) == "9|9\n10|10"


def test_only_newlines_end_lines(file: Path) -> None:
    file.write_bytes("a\x0cb\u2028c\r\nd".encode())

    assert page(file) == "1|a\x0cb\u2028c\n2|d"


def test_an_offset_past_the_end_says_how_long_the_file_is(file: Path) -> None:
    file.write_text("one\n")

    with pytest.raises(ToolError, match=r"has 1 lines; line 5"):
        page(file, 5)


def test_an_empty_file_says_so(file: Path) -> None:
    file.touch()

    assert page(file) == "[a.txt is empty]"


def test_a_long_line_is_cut_and_says_by_how_much(file: Path) -> None:
    file.write_text("x" * 5000)

    assert page(file) == f"1|{'x' * 2000}… [3,000 more characters]"


def test_a_page_has_at_most_a_hundred_thousand_bytes(file: Path) -> None:
    file.write_text(f"{'é' * 500}\n" * 1000)

    shown = page(file)

    assert len(shown.encode()) < MOST_BYTES + 100
    assert "of 1000; go on with offset=" in shown


def test_a_sparse_giant_is_read_in_bounded_memory(file: Path) -> None:
    with file.open("wb") as made:
        made.write(b"first\n" * 10_000)
        made.truncate(READ_WHOLE * 20)

    shown = page(file, 9_999)

    assert shown.startswith("9999|first\n10000|first\n")


def test_bytes_that_are_not_utf8_are_shown_as_such(file: Path) -> None:
    file.write_bytes(b"caf\xe9\n")

    assert page(file).startswith("1|caf\ufffd\n[some bytes are not UTF-8")


def test_a_replacement_character_of_the_file_itself_is_no_damage(file: Path) -> None:
    file.write_text("\ufffd\n")

    assert page(file) == "1|\ufffd"


def test_a_binary_file_is_named_as_such(file: Path) -> None:
    file.write_bytes(b"\x7fELF\2\1\1\0" + os.urandom(100))

    with pytest.raises(ToolError, match=r"is an ELF program, 108 bytes, not text"):
        page(file)


def test_a_picture_becomes_a_picture(file: Path) -> None:
    file.write_bytes(b"\x89PNG\r\n\x1a\nrest")

    parts = read_page(file, Page(shown="a.png", offset=1, limit=1)).answer.parts

    assert [part.kind for part in parts] == ["text", "image"]
    assert parts[1].media_type == "image/png"


def test_a_picture_too_large_to_send_is_refused(file: Path) -> None:
    file.write_bytes(b"\xff\xd8\xff" + bytes(6 << 20))

    with pytest.raises(ToolError, match="at most"):
        page(file)


def test_the_hash_covers_the_whole_file_not_the_page(file: Path) -> None:
    file.write_text("one\ntwo\n")
    before = read_page(file, Page(shown="a", offset=1, limit=1)).digest
    file.write_text("one\ntwo!\n")

    assert read_page(file, Page(shown="a", offset=1, limit=1)).digest != before


def test_a_missing_file_is_answered_with_names_that_are_near(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    (tmp_path / "settings.py").touch()

    assert missing(tmp_path / "readme.md", "readme.md").hint == "Did you mean README.md?"
    assert "settings.py" in missing(tmp_path / "setting.py", "setting.py").hint
    assert str(tmp_path) in missing(tmp_path / "src" / "deep" / "a.py", "src/deep/a.py").hint
