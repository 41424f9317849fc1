"""Damaged rows of the log, each of them in turn, and of the inbox: whoever reads a session is told which one it is, and
goes on."""

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle, islice, product
from pathlib import Path

import pytest

from hermes_agent.core.chat import Inbound
from hermes_agent.core.events import Notice, Outcome
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import written
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread
from tests.app.place import place
from tests.children import Said, said_by, started
from tests.cli.shell import typed

WAYS = (("show",), ("show", "--json"), ("export",), ("export", "-f", "jsonl"), ("export", "-f", "html"))
SET_ASIDE = "A message could not be read and was set aside (row 1 of the inbox, from cli"
ANSWERED = [("answered", "")] * 2
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


@pytest.mark.parametrize("body", [*DAMAGES, "of a later version"])
async def test_a_message_that_cannot_be_read_is_told_once_and_keeps_nothing_else_from_being_answered(
    tmp_path: Path, body: str
):
    async with place(tmp_path, script) as here:
        store, said = here.runtime.store, [here.inbound(text) for text in ("one", "two", "three")]
        for each in said:
            await store.inbox.accept(each, here.record.id, "cli")
        await damage(store, said[0], body)
        ended = await here.say("four")
        notices = [entry.event for entry in await here.log() if isinstance(entry.event, Notice)]
        states = [await store.inbox.find(each.source, each.source_id) for each in said]

    assert (ended.outcome, ended.text) == (Outcome.ANSWERED, "Reply to two\n\nthree\n\nfour.")
    assert [(each.text.partition(":")[0], each.level) for each in notices] == [(SET_ASIDE, "news")]
    assert [(each.state, each.reason) for each in states if each] == [("refused", notices[0].text), *ANSWERED]


async def test_a_message_that_cannot_be_read_and_is_alone_fails_its_run_once(tmp_path: Path):
    async with place(tmp_path, script) as here:
        store, lost = here.runtime.store, here.inbound("one")
        await store.inbox.accept(lost, here.record.id, "cli")
        await damage(store, lost, "{")
        after = await store.history.last_number(here.record.id)
        await here.runtime.hermes.resume(here.record.id)
        ended = await here.ended(after)
        notices = [entry for entry in await here.log() if isinstance(entry.event, Notice)]
        later = await here.say("two")

    assert (ended.outcome, ended.text.partition(":")[0]) == (Outcome.FAILED, SET_ASIDE)
    assert notices == []
    assert later.text == "Reply to two."


async def damage(store: Store, message: Inbound, body: str) -> None:
    if body == "of a later version":
        body = written(message).replace('"kind":"text"', '"kind":"hologram"')
    row = "UPDATE inbox SET body = $1 WHERE source_id = $2"
    await store.write(lambda tx: tx.run(row, body, message.source_id))
