"""`hermes sessions`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import click
import pytest

from hermes_agent.app.settings import SERVED
from hermes_agent.cli.commands.sessions import asked
from hermes_agent.core.errors import UnknownSession
from hermes_agent.core.events import Durable, Entry, MessageTaken, Outcome, RunEnded
from hermes_agent.core.messages import said
from hermes_agent.store.database import open_store
from tests.cli.kept import GARDEN, WORK, filled
from tests.cli.shell import Said, program, typed
from tests.store.made import add, mail, session


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return filled(tmp_path / "home")


def sessions(home: Path, *words: str, stdin: str = "") -> Said:
    return typed(home, "sessions", *words, stdin=stdin)


def test_the_latest_is_listed_first_and_no_title_moves_the_cursor(home: Path) -> None:
    lines = sessions(home, "list").out.splitlines()

    assert [line.split()[0] for line in lines] == ["SESSION", WORK, GARDEN]
    assert lines[1].endswith("Work\N{REPLACEMENT CHARACTER}[2J")
    assert len(sessions(home, "list", "-n", "1").out.splitlines()) == 2


def test_the_list_as_json_is_an_array(home: Path) -> None:
    found = json.loads(sessions(home, "list", "--json").out)

    assert [each["title"] for each in found] == ["Work\x1b[2J", "The garden"]
    garden = found[1]
    assert garden["words"].startswith("When do I plant Tomaten?")
    assert garden["messages"] == 3, "one of the person, two of the model"
    assert garden["calls"] > 0


def test_a_session_without_a_title_is_listed_by_its_first_words(home: Path) -> None:
    sessions(home, "rename", GARDEN, "")

    listed = sessions(home, "list").out

    assert "When do I plant Tomaten? 什么时候种番茄" in listed
    assert listed.splitlines()[0].split(maxsplit=5) == [
        "SESSION",
        "USED",
        "WHERE",
        "MESSAGES",
        "COST",
        "TITLE",
    ]


def test_an_empty_home_says_how_to_begin(tmp_path: Path) -> None:
    said = sessions(tmp_path, "list")

    assert (said.out, said.err) == ("", "There are no sessions yet. `hermes` starts one.\n")


def test_a_session_is_shown_by_the_beginning_of_its_title(home: Path) -> None:
    shown = sessions(home, "show", "the g").out

    assert shown.startswith("# The garden\n")
    assert "When do I plant Tomaten? 什么时候种番茄" in shown
    assert '`read_file` {"path":"garden.md"}' in shown
    assert "[1,000 more]" in shown
    assert "hidden thought" not in shown
    assert "\x1b" not in shown


def test_an_unknown_session_is_told_with_the_nearest(home: Path) -> None:
    with pytest.raises(UnknownSession, match="The garden"):
        sessions(home, "show", "The gardne")


@pytest.mark.parametrize("words", [["tomaten"], ["番茄"], ["PLANT", "tomaten"], ["i plant"], ["plant", "什么时候"]])
def test_messages_are_found_by_their_words_in_any_language(home: Path, words: list[str]) -> None:
    found = json.loads(sessions(home, "search", *words, "--json").out)

    assert [(each["session"], each["role"]) for each in found] == [(GARDEN, "user")]
    assert "Tomaten" in sessions(home, "search", *words).out


@pytest.mark.parametrize(
    ("word", "query"),
    [
        ("tomaten", "tomaten"),
        ("i plant", '"i plant"'),
        ("plant -tomaten", "plant -tomaten"),
        ("plant NOT tomaten", "plant NOT tomaten"),
        ('"i plant" tomaten', '"i plant" tomaten'),
        ("-tomaten", "-tomaten"),
    ],
)
def test_one_argument_of_several_words_is_a_phrase_or_a_query(word: str, query: str) -> None:
    assert asked(word) == query


def test_what_is_left_out_of_a_query_in_one_argument_is_left_out(home: Path) -> None:
    assert sessions(home, "search", "plant -tomaten").out == ""
    assert "Tomaten" in sessions(home, "search", "plant -zucchini").out


def test_what_stands_nowhere_is_not_found(home: Path) -> None:
    said = sessions(home, "search", "zucchini", "'\"*(")

    assert (said.out, said.err) == ("", "No message contains these words.\n")


def test_a_session_is_renamed(home: Path) -> None:
    assert sessions(home, "rename", "Work", "Office").out == f"{WORK} is now called “Office”.\n"
    assert "Office" in sessions(home, "list").out


def test_an_exported_log_holds_every_event(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "garden.jsonl"

    said = sessions(home, "export", GARDEN, "-f", "jsonl", "-o", str(target))

    first, *events = [json.loads(line) for line in target.read_text().splitlines()]
    assert first["id"] == GARDEN
    assert [each["event"]["kind"] for each in events] == [
        "message_taken",
        "replied",
        "tool_started",
        "tool_ended",
        "replied",
    ]
    assert said.err == f"5 entries of {GARDEN} are in {target}.\n"


def test_an_exported_page_runs_nothing(home: Path) -> None:
    page = sessions(home, "export", GARDEN, "-f", "html").out

    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_a_place_that_cannot_be_written_is_told(home: Path, tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="cannot be written"):
        sessions(home, "export", GARDEN, "-o", str(tmp_path / "none" / "f"))


def test_deleting_asks_first(home: Path) -> None:
    with pytest.raises(click.Abort):
        sessions(home, "delete", GARDEN, stdin="n\n")
    assert GARDEN in sessions(home, "list").out

    assert sessions(home, "delete", GARDEN, "--yes").out == f"{GARDEN} is deleted.\n"
    assert GARDEN not in sessions(home, "list").out


def test_pruning_deletes_what_is_older(home: Path) -> None:
    assert sessions(home, "prune", "--before", "2023-11-15", "--yes").out == "1 session deleted.\n"
    assert sessions(home, "prune", "--before", "2023-11-15", "-y").out.startswith("No session is unused since")
    assert sessions(home, "prune", "--before", "1d", stdin="y\n").out == "1 session deleted.\n"


def test_what_is_kept_is_counted(home: Path) -> None:
    found = json.loads(sessions(home, "stats", "--json").out)

    assert (found["sessions"], found["entries"], found["surfaces"]) == (2, 6, {"cli": 2})
    assert "log entries" in sessions(home, "stats").out


def chat_of(home: Path, *events: Durable, crashes: int = 0, waits: bool = False) -> str:
    """A session of a chat with such a log; `waits`: its message has no end yet, after so many deaths."""

    async def make() -> str:
        store = await open_store(home / "hermes.db")
        record = replace(session("chat"), surface="telegram", conversation="telegram:dm:7", principal="telegram:7")
        await add(store, record)
        if waits:
            await store.inbox.accept(mail(), "chat", SERVED)
            await store.write(lambda tx: tx.run("UPDATE lane SET crashes = $1, ready_at = 9e9", crashes))
        else:
            lease = await store.lanes.hold("chat", SERVED)
            assert lease is not None
            entries = [Entry(number=number, run="r", at=1.0, event=event) for number, event in enumerate(events, 1)]
            await store.write(lambda tx: store.history.append(tx, lease, entries))
            await store.lanes.release(lease)
        await store.close()
        return record.id

    home.mkdir(exist_ok=True)
    return asyncio.run(make())


def lane_of(home: Path) -> tuple[int, float, int]:
    async def look() -> tuple[int, float, int]:
        store = await open_store(home / "hermes.db")
        row = await store.read(lambda tx: tx.row("SELECT crashes, ready_at, pending FROM lane"))
        await store.close()
        assert row is not None
        return row[0], row[1], row[2]

    return asyncio.run(look())


ENDED = RunEnded(outcome=Outcome.LIMIT, text="It waits.", turns=1, reason="deaths")


def test_a_chat_that_waits_is_taken_up_by_the_gateway(tmp_path: Path) -> None:
    chat_of(tmp_path / "home", MessageTaken(message=said("Hi")), ENDED)

    told = sessions(tmp_path / "home", "resume", "chat")

    assert told.out == "chat goes on; its reply comes in its chat (telegram), as soon as a gateway runs.\n"
    assert lane_of(tmp_path / "home") == (0, 0.0, 1)


def test_a_message_that_was_put_aside_is_tried_at_once(tmp_path: Path) -> None:
    chat_of(tmp_path / "home", crashes=2, waits=True)

    assert "goes on" in sessions(tmp_path / "home", "resume", "chat").out

    assert lane_of(tmp_path / "home") == (0, 0.0, 1)


def test_what_has_ended_well_is_not_resumed(tmp_path: Path) -> None:
    chat_of(tmp_path / "home", replace(ENDED, outcome=Outcome.ANSWERED))

    assert sessions(tmp_path / "home", "resume", "chat").out == "Nothing to resume: the last run of chat is complete.\n"
    assert lane_of(tmp_path / "home") == (0, 0.0, 0)


def test_a_question_that_nobody_can_answer_says_how_to(home: Path) -> None:
    said = program("sessions", "delete", GARDEN, home=home)

    assert said.code == 130
    assert "`-y` says yes where a command has it" in said.err
