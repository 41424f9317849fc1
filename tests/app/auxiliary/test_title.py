"""Titles, seen from whole processes."""

import asyncio

import pytest

from hermes_agent.app.auxiliary.background_models import LONGEST, SHOWN, as_title
from hermes_agent.app.opening import Options
from hermes_agent.core.events import RunEnded
from hermes_agent.providers.demo.script import Answer, Pace, Say
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, place, settle_home

CHAT = Options(titles=True)


def is_title(heard):
    return "You name conversations" in heard.system


def naming(title):
    """A model that answers, and names conversations so."""

    def script(heard):
        if not is_title(heard):
            return Say("In May, after the last frost.")
        return title(heard) if callable(title) else title

    return script


async def title_of(here):
    await here.runtime.settled()
    return (await here.runtime.hermes.record(here.record.id)).title


async def test_a_session_gets_a_title_after_its_first_reply_and_no_second_one(tmp_path):
    async with place(tmp_path, naming(Say('"Planting Tomatoes."\n')), CHAT) as here:
        await here.say("When do I plant tomatoes?")
        assert await title_of(here) == "Planting Tomatoes"
        await here.say("And beans?")
        await here.runtime.settled()

        rows = await here.runtime.store.usage.rows(here.record.id)
        assert [row.purpose for row in rows] == ["chat", "title", "chat"]
        title = rows[1]
        assert (title.outcome, title.run, title.principal) == ("ok", "", here.record.principal)
        assert await here.text("/title") == "Planting Tomatoes"
        assert "Planting Tomatoes" in await here.text("/sessions")


async def test_the_model_is_shown_how_it_began_and_nothing_else(tmp_path):
    async with place(tmp_path, naming(Say("Tomatoes")), CHAT) as here:
        await here.say("When do I plant tomatoes? " + "x" * 2 * SHOWN)
        await title_of(here)

        (heard,) = [heard for heard in here.server.asked if is_title(heard)]
        (message,) = heard.messages
        assert "PERSON: When do I plant tomatoes?" in message.text
        assert "AGENT: In May, after the last frost." in message.text
        assert len(message.text) < SHOWN + 500
        assert not heard.tools


async def test_nobody_waits_for_a_title(tmp_path):
    slow = Answer(pieces=(Say("Late"),), pace=Pace(first=30.0))
    async with asyncio.timeout(10), serving(openai_model(naming(slow), keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with another(home, server, CHAT) as here:
            await here.say("Hi")
            await here.say("Hi again")
            assert (await here.runtime.hermes.record(here.record.id)).title == ""
        # What was begun is given up when the process ends, and counts as what it may have cost.
        async with another(home, server) as later:
            rows = await later.runtime.store.usage.rows(later.record.id)

    assert sorted((row.purpose, row.outcome) for row in rows) == [("chat", "ok"), ("chat", "ok"), ("title", "stopped")]


@pytest.mark.parametrize("failing", [Status(400), Say(" \n*\n")])
async def test_a_failure_is_in_the_log_and_the_ledger_and_not_in_the_conversation(tmp_path, failing):
    async with place(tmp_path, naming(failing), CHAT) as here:
        for _ in range(3):
            await here.say("Hi")
            assert await title_of(here) == ""

        assert f"session {here.record.id} got no title" in here.runtime.home.log_file.read_text()
        assert not [entry for entry in await here.log() if entry.event.kind == "notice"]
        rows = await here.runtime.store.usage.rows(here.record.id)
        assert [row.purpose for row in rows].count("title") == 2  # and then it is left alone


async def test_a_title_that_a_person_gave_meanwhile_stays(tmp_path):
    async with place(tmp_path, naming(Say("A model's")), CHAT) as here:
        await here.runtime.hermes.store.sessions.rename(here.record.id, "Mine")
        await here.say("Hi")

        assert await title_of(here) == "Mine"
        await here.runtime.store.sessions.entitle(here.record.id, "Another")
        assert await title_of(here) == "Mine"
        assert [row.purpose for row in await here.runtime.store.usage.rows(here.record.id)] == ["chat"]


@pytest.mark.parametrize(
    ("options", "more"),
    [(Options(), ""), (CHAT, "auxiliary:\n  title:\n    enabled: false\n")],
)
async def test_without_a_chat_or_where_it_is_turned_off_nothing_is_asked(tmp_path, options, more):
    async with place(tmp_path, naming(Say("A title")), options, more=more) as here:
        await here.say("Hi")

        assert await title_of(here) == ""
        assert len(here.server.exchanges) == 1


async def test_a_run_that_failed_or_said_nothing_of_a_person_gets_none(tmp_path):
    async with place(tmp_path, [Status(400), Say("x")], CHAT) as here:
        ended = await here.say("Hi")

        assert isinstance(ended, RunEnded)
        assert await title_of(here) == ""
        assert len(here.server.exchanges) == 1


async def test_a_secret_is_not_in_a_title_or_what_it_is_made_of(tmp_path):
    value = "hunter2-hunter2-hunter2"
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.env").write_text(f"MY_TOKEN={value}\n")
    (tmp_path / "home/.env").chmod(0o600)
    async with place(tmp_path, naming(Say(f"The token {value}")), CHAT) as here:
        await here.say(f"What is {value}?")

        assert value not in await title_of(here)
        assert not any(value in heard.messages[0].text for heard in here.server.asked if is_title(heard))


async def test_a_model_of_its_own_writes_it(tmp_path):
    def script(heard):
        return Say("Tomatoes") if heard.model == "small" else Say("In May.")

    more = "auxiliary:\n  title:\n    model: custom/small\n"
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, more)
        async with another(home, server, CHAT) as here:
            await here.say("When?")
            assert await title_of(here) == "Tomatoes"
        async with another(home, server, CHAT) as later:
            await later.say("And beans?")
            await later.runtime.settled()
            rows = await later.runtime.store.usage.rows(later.record.id)

    assert sorted(row.model for row in rows) == ["m", "m", "small"]


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("Planting tomatoes", "Planting tomatoes"),
        ('\n  "Planting tomatoes."  \nBecause you asked.', "Planting tomatoes"),
        ("**Title:** Tomaten im Mai", "Tomaten im Mai"),
        ("番茄种植", "番茄种植"),
        ("Red \x1b[31malert\x07\u202e", "Red [31malert"),
        ("", ""),
        (' "" ', ""),
        ("word " * 40, "word " * 10 + "word…"),
        ("x" * 100, "x" * (LONGEST - 1) + "…"),
    ],
)
def test_a_title_is_one_short_plain_line(words, title):
    assert as_title(words) == title
    assert len(as_title(words)) <= LONGEST


async def test_the_demo_names_a_conversation_after_its_first_words(tmp_path):
    async with serving(openai_model([])) as nobody:
        home = settle_home(tmp_path / "home", nobody.url)
        home.config_file.write_text("model:\n  default: demo/scripted\n")
        async with another(home, nobody, CHAT) as here:
            await here.say("Find out which tests pass, please.")
            assert await title_of(here) == "Find out which tests pass, please"
