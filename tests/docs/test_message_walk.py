"""The straight line of one message is the one that a message takes: each function that a map names there is called, in
that order."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.walk import walked
from tests.architecture.source import ROOT
from tests.docs.pages import DOCS, sections, table
from tests.docs.test_developers_pages import NAMED

LINE = "The straight line of one message"
MAPS = (ROOT / "AGENTS.md", DOCS / "architecture.md")

Call = tuple[str, str]


def named(text: str) -> list[Call]:
    """The functions in the table of steps, in its order."""
    rows = " ".join(row[1] for row in table(sections(text, 2)[LINE], "step"))
    return [
        (file, name) for file, names in NAMED.findall(rows) for name in names.replace("`", "").replace(",", "").split()
    ]


def off_the_line(steps: Sequence[Call], calls: Sequence[Call]) -> list[str]:
    """Steps that a message does not take, or takes before the step above."""
    problems, at = [], -1
    for file, name in steps:
        if (file, name) not in calls:
            problems.append(f"`{file}` `{name}`: no message runs through it")
        elif calls.index((file, name)) < at:
            problems.append(f"`{file}` `{name}`: is called before the step above")
        else:
            at = calls.index((file, name))
    return problems


async def test_a_message_takes_the_steps_of_both_maps(tmp_path: Path):
    walk = await walked(tmp_path)

    assert walk.reply == "Hello."
    assert {map_.name: off_the_line(named(map_.read_text()), list(walk.calls)) for map_ in MAPS} == {
        map_.name: [] for map_ in MAPS
    }


@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: map_.name)
def test_a_map_leads_from_the_channel_back_to_it(map_: Path):
    files = [file for file, _ in named(map_.read_text())]

    assert len(files) > 10
    assert files[0] == "gateway/channels/telegram.py"
    assert "gateway/channels/telegram.py" in files[-4:]


def test_a_step_that_is_not_taken_or_comes_too_late_is_found():
    text = (
        f"## {LINE}\n\n| step | where |\n|--:|---|\n| 1 | `b.py` `send`, `a.py` `hear` |\n| 2 | `a.py` `Box.open` |\n"
    )
    assert named(text) == [("b.py", "send"), ("a.py", "hear"), ("a.py", "Box.open")]
    assert off_the_line(named(text), [("a.py", "hear"), ("b.py", "send")]) == [
        "`a.py` `hear`: is called before the step above",
        "`a.py` `Box.open`: no message runs through it",
    ]
