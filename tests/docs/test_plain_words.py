"""The manual is read at a glance: short sentences, short paragraphs, none of the habits that make a reader stop."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import pytest

from tests.architecture.source import ROOT
from tests.docs.pages import DOCS, prose

MEAN, LONGEST, LINES = 18, 40, 6
"""Words of a sentence, on the average of a page and at most; lines of a paragraph or an item of a list."""

HABITS = re.compile(
    r"\b(?:(?:is|are|was|were|be) (?:told|said|heard)|(?:who|what) (?:waits|rests)|whoever|what that was"
    r"|(?:take|takes|taken) up(?! to)|(?:begins?|began) (?:again|anew)|go(?:es)? on|gets? on|put aside)\b",
    re.IGNORECASE,
)
"""A passive without an actor, a clause or a turn in the place of the field's noun or verb."""

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

ITEM = re.compile(r"(?:[-*]|\d+\.)\s+")
NO_PROSE = ("#", "|", "<!--")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph or an item of a list, with the number of its first line."""

    line: int
    lines: list[str]


def paragraphs(text: str) -> Iterator[Paragraph]:
    """The prose of a page, without headings, tables and blocks of code."""
    paragraph: Paragraph | None = None
    for number, raw in enumerate(prose(text).splitlines(), 1):
        line = raw.strip()
        item = ITEM.match(line)
        if not line or item or line.startswith(NO_PROSE):
            if paragraph:
                yield paragraph
            paragraph = Paragraph(number, [line[item.end() :]]) if item else None
        elif paragraph:
            paragraph.lines.append(line)
        else:
            paragraph = Paragraph(number, [line])
    if paragraph:
        yield paragraph


def sentences(paragraph: Paragraph) -> list[str]:
    """The sentences, in which a piece of code is one word and a link is its words."""
    text = re.sub(r"`[^`]*`", "`X`", " ".join(paragraph.lines))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return [each for each in re.split(r"(?<=[.!?])[\"')*_]*\s+", text) if each]


def hard_to_read(text: str) -> list[str]:
    """What is over a limit, each with its line or its sentence."""
    problems: list[str] = []
    lengths: list[int] = []
    for paragraph in paragraphs(text):
        if len(paragraph.lines) > LINES:
            problems.append(f"line {paragraph.line}: a paragraph of {len(paragraph.lines)} lines, at most {LINES}")
        for sentence in sentences(paragraph):
            lengths.append(len(sentence.split()))
            if lengths[-1] > LONGEST:
                problems.append(f"line {paragraph.line}: {lengths[-1]} words, at most {LONGEST}: {sentence}")
            problems += [f"line {paragraph.line}: `{word}`: {sentence}" for word in HABITS.findall(sentence)]
    if lengths and mean(lengths) > MEAN:
        problems.append(f"{mean(lengths):.1f} words a sentence, at most {MEAN}")
    return problems


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_a_page_is_in_plain_words(file: Path):
    assert hard_to_read(file.read_text()) == []


def test_a_long_sentence_a_long_paragraph_and_a_habit_are_found():
    long = " ".join(["word"] * 41)
    text = f"# Title\n\n{long}.\n\n" + "Short.\n" * 7 + "\n- The owner is told. No.\n\n```text\nis told\n```\n"
    assert hard_to_read(text) == [
        f"line 3: 41 words, at most 40: {long}.",
        "line 5: a paragraph of 7 lines, at most 6",
        "line 13: `is told`: The owner is told.",
    ]


def test_sentences_that_are_long_on_the_average_are_found():
    assert hard_to_read(" ".join(["word"] * 19) + ".") == ["19.0 words a sentence, at most 18"]


def test_code_links_tables_and_headings_are_not_counted():
    text = f"# {'word ' * 50}\n\n| {'word ' * 50} |\n\nUse `{'word ' * 50}` and [this page](a.md#b-c). Then rest.\n"
    assert hard_to_read(text) == []
    (paragraph,) = paragraphs(text)
    assert sentences(paragraph) == ["Use `X` and this page.", "Then rest."]
