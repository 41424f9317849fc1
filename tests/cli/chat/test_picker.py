"""The picker by itself, then at a terminal."""

import asyncio
from pathlib import Path

import pytest
from wcwidth import wcswidth

from hermes_agent.cli.chat.chat_session import names
from hermes_agent.cli.chat.picker import Picker, Wanted, menu, verbs, wanted_in
from hermes_agent.cli.picker_choices import Choice
from hermes_agent.core.errors import HermesError
from tests.cli.chat.conftest import Open

IDLE = " idle ·"
MANY = [Choice(name=f"v/model-{n}", about=f"{n}k · 日本語", line=f"/model v/model-{n}") for n in range(5_000)]
SKILLS = [("release", "A bundle of skills."), ("release-notes", "Writes\nnotes."), ("status", "Hidden.")]


async def opened(line: str, choices: list[Choice] | Exception) -> Picker:
    """A picker that has its choices."""
    arrived = asyncio.Event()

    async def load(wanted: Wanted) -> list[Choice]:
        assert wanted.key
        if isinstance(choices, Exception):
            raise choices
        return choices

    picker = Picker(load, lambda: SKILLS, arrived.set)
    picker.follow(line)
    picker.when_loaded(arrived.set)
    await arrived.wait()
    return picker


def rows(picker: Picker, columns: int = 60) -> list[str]:
    return "".join(text for _, text, *_ in picker.rows(columns)).split("\n")


def offered(line: str) -> list[str]:
    """What a list offers that takes no time: the line that each choice writes."""
    picker = Picker(lambda _: asyncio.sleep(0, []), lambda: SKILLS, lambda: None)
    picker.follow(line)
    return [each.line for each in picker._list.found] if picker.is_open else []


async def test_it_narrows_with_what_is_typed_and_is_quick_with_5000():
    picker = await opened("/model ", MANY)
    assert rows(picker)[0].startswith("> v/model-0")
    assert rows(picker)[-1].strip() == "5,000 fit"

    picker.follow("/model 4999")

    assert picker.chosen is not None
    assert picker.chosen.line == "/model v/model-4999"


async def test_the_mark_moves_within_the_list_and_stays_visible():
    picker = await opened("/model ", MANY)
    for by in (-1, 3, 8):
        picker.move(by)

    marked = [row for row in rows(picker) if row.startswith(">")]
    assert picker.chosen is not None
    assert [row.split()[1] for row in marked] == [picker.chosen.name] == ["v/model-11"]


@pytest.mark.parametrize("columns", [12, 20, 40, 80])
async def test_no_row_is_wider_than_the_terminal(columns: int):
    picker = await opened("/model ", [*MANY[:20], Choice(name="日本語 " * 40, about="a " * 90)])
    picker.move(100)

    assert all(wcswidth(row) <= columns for row in rows(picker, columns))


def test_each_place_asks_for_its_list():
    wanted = {
        "/": ("/", "/", ""),
        "/sta": ("/", "/sta", ""),
        "/model ": ("model", "", "models"),
        "/rewind 2": ("rewind", "2", "checkpoints"),
        "/rollback diff 2": ("rollback diff", "2", "checkpoints"),
        "/config age": ("config", "age", "settings"),
        "/learn ": ("learn", "", ""),
        "/learn undo ": ("learn undo", "", "lessons"),
        "/goal pause g_": ("goal pause", "g_", "goals"),
        "/effort ": ("effort", "", ""),
        "look @src/ap": ("@src/", "src/ap", ""),
        "@.h": ("@.", ".h", ""),
    }
    for line, expected in wanted.items():
        found = wanted_in(line)
        assert found is not None, line
        assert (found.key, found.query, found.source) == expected
    for line in (
        "hello",
        "/quit ",
        "/etc/hosts",
        "see /stat",
        "/config agent.max_turns 3",
        "/model x\ny",
        "me@s",
        "/goal make it green",
        "/title x",
    ):  # fmt: skip - one line each would hide that these are one list
        assert wanted_in(line) is None, line


def test_commands_are_offered_with_skills_and_other_names_behind_them():
    assert offered("/stat") == ["/status "]
    assert offered("/release-") == ["/release-notes "]
    assert offered("/cle") == ["/clear "]
    assert len(offered("/")) >= len(names()) + 2
    assert offered("/sav") == []


def test_a_command_that_needs_words_or_opens_a_list_is_not_sent_at_once():
    sends = {each.name: each.sends for each in menu(SKILLS)}
    assert all(sends[name] for name in ("/status", "/title", "/clear", "/quit"))
    assert not any(sends[name] for name in ("/steer", "/queue", "/model", "/rewind", "/release"))


def test_the_verbs_of_a_command_are_offered_and_only_what_is_whole_is_sent():
    assert offered("/learn und") == ["/learn undo "]
    assert [(each.name, each.sends) for each in verbs("learn")][:2] == [("log", True), ("show", False)]
    assert all(each.sends for each in verbs("effort"))
    assert not any(each.sends for each in verbs("subgoal"))
    assert offered("/goal do it") == []


async def test_nothing_that_fits_and_a_failure_are_sentences():
    assert "nothing fits" in rows(await opened("/model zzzzz", MANY))[0]
    assert rows(await opened("/model ", HermesError("No list today.")))[0].strip() == "No list today."
    assert "`hermes logs` says why" in rows(await opened("/model ", KeyError("of a defect")))[0]
    assert not (await opened("thanks @zzzzz", MANY)).is_open


async def test_it_stays_closed_until_another_list_is_asked_for():
    picker = await opened("/model ", MANY)
    picker.close()
    picker.follow("/model 4")
    assert not picker.is_open
    picker.follow("/resume ")
    assert picker.is_open
    picker.follow("/model 4", opens=False)
    assert not picker.is_open


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


def test_a_file_is_chosen_by_some_letters_and_the_words_go_on(at_terminal: Open, project: Path):
    (project / "src").mkdir()
    (project / "src" / "my notes.md").write_text("Remember.\n")
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("see @mynot\t")
    terminal.wait_for('> see @"src/my notes.md"')
    terminal.send("and answer\r")

    terminal.wait_for('> see @"src/my notes.md" and answer\n  + src/my notes.md, 1 line', IDLE)


def test_an_earlier_line_that_is_fetched_opens_no_list(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("first\r")
    terminal.wait_for("You said: 'first'", IDLE)
    terminal.send("/model custom/test-model\r")
    terminal.wait_for("This session now asks")

    terminal.send("\x1b[A")
    terminal.wait_for("> /model custom/test-model\n /model [vendor/model]")
    terminal.send("\x1b[A")

    terminal.wait_for("> first\n idle")


def test_a_lesson_is_picked_to_be_shown(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("learn\r")
    terminal.wait_for("That is what I found.", IDLE)

    terminal.send("/learn sh\r")
    terminal.wait_for("> /learn show", "memory")
    terminal.send("\r")

    terminal.wait_for("Publish each build with twine upload.", IDLE)
