"""Damaged rows of the log, each of them in turn: whoever reads a session is told which one it is, and goes on."""

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle, islice, product
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Answer, Call, Heard, Say
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread
from tests.children import Said, said_by, started
from tests.cli.shell import typed

WAYS = (("show",), ("show", "--json"), ("export",), ("export", "-f", "jsonl"), ("export", "-f", "html"))
DAMAGES = ("{", "", "null", "[]", '{"kind": 7}', "[" * 100_000, "\x00\xff", '{"message": {"role": 9}}')


class Home:
    """A home with one session, in which a tool was called, and its model."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.root, self.work, self.server = folder / "home", folder / "work", server

    def hermes(self, *words: str) -> Said:
        return said_by(started(*words, home=self.root, folder=self.work))

    def rows(self) -> list[tuple[int, str, str]]:
        with closing(sqlite3.connect(self.root / "hermes.db")) as database:
            return database.execute("SELECT number, kind, session FROM entry ORDER BY number").fetchall()

    def damage(self, number: int, body: str) -> None:
        with closing(sqlite3.connect(self.root / "hermes.db")) as database:
            database.execute("UPDATE entry SET body = ? WHERE number = ?", (body, number))
            database.commit()


def script(heard: Heard) -> Answer | Say:
    if heard.messages[-1].text == "look":
        return Answer(pieces=(Say("I look."), Call("list_files", {"path": "."})))
    return Say(f"Reply to {heard.messages[-1].text[:20]}.")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("damage")
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    with serving_in_thread(openai_model(script, keys=())) as server:
        home = Home(folder, server)
        (home.root / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n")
        assert home.hermes("-z", "look").code == 0
        assert home.hermes("-c", "-z", "again").code == 0
        yield home


@pytest.fixture
def home(made: Home, tmp_path: Path) -> Home:
    shutil.copytree(made.root, tmp_path / "home")
    (tmp_path / "work").symlink_to(made.work)
    copy = Home(tmp_path, made.server)
    copy.work = made.work
    return copy


def test_every_row_in_turn_is_named_and_passed_over_by_who_reads(home: Home, full: bool):
    rows = home.rows()
    assert {kind for _, kind, _ in rows} >= {"message_taken", "replied", "tool_ended", "run_ended", "prefix_frozen"}
    each = max(len(rows), len(DAMAGES))
    pairs = product(rows, DAMAGES) if full else islice(zip(cycle(rows), cycle(DAMAGES), strict=False), each)
    for (number, kind, session), body in pairs:
        home.damage(number, body)
        word = f"Entry {number} of the log ({kind}) is damaged and left out."
        for way in WAYS:
            said = typed(home.root, "sessions", *way, session)
            assert said.code == 0
            assert word in said.out, (way, body[:20])
        assert isinstance(json.loads(typed(home.root, "sessions", "search", "reply", "--json").out), list)
        checks = {each["name"]: each for each in json.loads(typed(home.root, "doctor", "--offline", "--json").out)}
        assert checks["log"]["found"].startswith(f"{numbered(number)} of logs cannot be read: {session} 1")
        assert typed(home.root, "doctor", "--offline").code == 1


def numbered(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def test_with_any_row_damaged_the_session_goes_on(home: Home, full: bool):
    """What the model is sent is what its provider takes, too: the server refuses calls without their results."""
    rows = home.rows()
    assert home.hermes("-c", "-z", "once more").code == 0
    for number, kind, _ in rows if full else sorted(random.sample(rows, 3)):
        with closing(sqlite3.connect(home.root / "hermes.db")) as database:
            (body,) = database.execute("SELECT body FROM entry WHERE number = ?", (number,)).fetchone()
        home.damage(number, "{")

        said = home.hermes("-c", "-z", f"after {number}")

        assert (said.code, said.out) == (0, f"Reply to after {number}.\n"), (kind, said.err)
        home.damage(number, body)


def test_a_prefix_that_is_damaged_is_a_sentence_and_the_log_can_be_read(home: Home):
    with closing(sqlite3.connect(home.root / "hermes.db")) as database:
        database.execute("UPDATE prefix SET body = '{'")
        database.commit()

    said = home.hermes("-c", "-z", "go on")

    assert said.code != 0
    assert "can be read and not gone on with" in said.err
    assert "Traceback" not in said.err
    assert home.hermes("sessions", "show", home.rows()[0][2]).code == 0


def test_an_event_of_a_later_version_is_a_sentence(home: Home):
    with closing(sqlite3.connect(home.root / "hermes.db")) as database:
        database.execute("""UPDATE entry SET kind = 'dreamt', body = '{"kind": "dreamt"}' WHERE number = 3""")
        database.commit()

    for way in (("sessions", "show", home.rows()[0][2]), ("-c", "-z", "go on")):
        said = home.hermes(*way)
        assert said.code != 0
        assert "is an event `dreamt`, which this version of Hermes does not know" in said.err
        assert "Traceback" not in said.err
