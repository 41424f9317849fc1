"""The picker by itself, then at a terminal."""

import asyncio
from pathlib import Path

import pytest
from wcwidth import wcswidth

from hermes_agent.cli.chat.picker import Pick, Picker
from hermes_agent.core.errors import HermesError
from tests.cli.chat.conftest import Open

IDLE = " idle ·"
MANY = [Pick(line=f"/model v/model-{n}", label=f"v/model-{n}", about=f"{n}k · 日本語") for n in range(5_000)]


async def opened(line: str, picks: list[Pick] | HermesError) -> Picker:
    """A picker that has its choices."""
    arrived = asyncio.Event()

    async def load(command: str) -> list[Pick]:
        assert command
        if isinstance(picks, HermesError):
            raise picks
        return picks

    picker = Picker(load, arrived.set)
    picker.follow(line)
    if picker.is_open:
        await arrived.wait()
    return picker


def rows(picker: Picker, columns: int = 60) -> list[str]:
    return "".join(text for _, text, *_ in picker.rows(columns)).split("\n")


async def test_it_narrows_with_what_is_typed_and_is_quick_with_5000():
    picker = await opened("/model ", MANY)
    assert rows(picker)[0].startswith("> v/model-0")
    assert rows(picker)[-1].strip() == "500 fit"

    picker.follow("/model 4999")

    assert picker.chosen is not None
    assert picker.chosen.line == "/model v/model-4999"


async def test_the_mark_moves_within_the_list_and_stays_visible():
    picker = await opened("/model ", MANY)
    for by in (-1, 3, 8):
        picker.move(by)

    marked = [row for row in rows(picker) if row.startswith(">")]
    assert picker.chosen is not None
    assert [row.split()[1] for row in marked] == [picker.chosen.label] == ["v/model-11"]


@pytest.mark.parametrize("columns", [12, 20, 40, 80])
async def test_no_row_is_wider_than_the_terminal(columns: int):
    picker = await opened("/model ", [*MANY[:20], Pick(line="/x", label="日本語 " * 40, about="a " * 90)])
    picker.move(100)

    assert all(wcswidth(row) <= columns for row in rows(picker, columns))


async def test_it_opens_for_commands_with_choices_alone():
    for line in ("/quit ", "hello", "/model", "/config agent.max_turns 3", "/rollback diff 2", "/model x\ny"):
        assert not (await opened(line, MANY)).is_open, line
    for line in ("/model ", "/rewind ", "/help x", "/config age"):
        assert (await opened(line, MANY)).is_open, line
    picker = Picker(lambda _: asyncio.sleep(0, []), lambda: None)
    assert picker.opens("/model")
    assert picker.opens("/rewind")
    assert not any(picker.opens(line) for line in ("/help", "/model ", "model", "/new"))


async def test_nothing_that_fits_and_a_failure_are_sentences():
    assert "nothing fits" in rows(await opened("/model zzzzz", MANY))[0]
    assert rows(await opened("/model ", HermesError("No list today.")))[0].strip() == "No list today."


async def test_it_stays_closed_until_another_command_is_typed():
    picker = await opened("/model ", MANY)
    picker.close()
    picker.follow("/model 4")
    assert not picker.is_open
    picker.follow("/resume ")
    assert picker.is_open


def test_a_model_is_picked_by_some_of_its_letters(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/model\r")
    terminal.wait_for("> custom/test-model", "current")
    terminal.send("demoscr")
    terminal.wait_until(lambda: "> demo/scripted" in terminal.text, "the demo model")
    terminal.send("\r")

    terminal.wait_for("This session now asks demo/scripted", "demo/scripted", IDLE)


def test_a_session_is_picked_by_its_first_words(at_terminal: Open, project: Path):
    first = at_terminal()
    first.wait_for("new session")
    first.send("hello green tea\r")
    first.wait_for("You said: 'hello green tea'", IDLE)
    first.send("/title -\r")
    first.wait_for("Titled")
    first.send("\x04")
    first.wait_for_end()
    second = at_terminal()
    second.wait_for("new session")

    second.send("/resume\r")
    second.wait_for("now · project")
    second.send("\r")

    second.wait_for("Resumed 20", "> hello green tea")


def test_a_skill_is_picked_and_its_words_follow(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/skills reltes")
    terminal.wait_until(lambda: "> /release-notes" in terminal.text, "the skill")
    terminal.send("\r")
    terminal.wait_for("> /release-notes\n")
    terminal.send("for v2\r")

    text = terminal.wait_for("+ /release-notes", IDLE)
    assert "> for v2" in text


def test_escape_closes_the_picker_and_arrows_move_in_it(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("/reasoning\r")
    terminal.wait_for("> none", "  low")

    terminal.send("\x1b[B\x1b[B")
    terminal.wait_for("> low")
    terminal.send("\x1b")
    terminal.wait_until(lambda: "> low" not in terminal.text, "no picker")
    terminal.send("high\r")

    terminal.wait_for("From its next run on this session reasons at high")


def test_a_checkpoint_takes_two_enters_and_a_third_does_nothing(at_terminal: Open, project: Path):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("patch it\r")
    terminal.wait_for("  -two\n  +zwei\n", IDLE)

    terminal.send("/rollback\r")
    terminal.wait_for("before patch")
    terminal.send("\r")
    terminal.wait_for("> /rollback ")
    assert "Restored" not in terminal.text
    terminal.send("\r\r\r")

    terminal.wait_for("checkpoint", IDLE)
    terminal.send("/status\r")
    text = terminal.wait_for("Run      none")
    assert len([line for line in text.split("\n") if line.startswith("> /rollback")]) == 1
