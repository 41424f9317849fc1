"""Who is to blame for a death: a message that kills the gateway each time, and many that somebody else's kills meet."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Answer, Heard, Pace, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.faults.storm import Crew, Side, configuration, missing_of, repeat, sides

PEOPLE, WORKING = 4, 1.0
"""How many write, and the seconds that a run of the others takes: each is in the middle of it when the program dies."""


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_of_many_runs_only_the_one_that_the_program_dies_of_waits_and_a_word_tries_it_again(tmp_path: Path):
    crews: list[Crew] = []

    def answer(heard: Heard) -> Answer:
        text = heard.messages[-1].text
        if "kill" not in text or crews[0].kills >= 3:
            return Answer(pieces=(Say(f"Re: {text}"),), pace=Pace(first=WORKING))
        asyncio.get_running_loop().call_later(WORKING / 4, crews[0].processes["gateway"].kill)
        return Answer(pieces=(Say("Never."),), pace=Pace(first=60.0))

    home = tmp_path / "home"
    home.mkdir()
    async with sides() as (telegram, *_), serving(openai_model(answer, keys=())) as model:
        (home / "config.yaml").write_text(configuration(model.url, [telegram]))
        for person in range(PEOPLE):
            await telegram.double.say("kill" if person == 3 else f"m{person}", chat=telegram.chat(person), user="7")
        with Crew(home, {"gateway": ("gateway", "run")}) as crew:
            crews.append(crew)
            await answered(telegram, crew, PEOPLE)
            said = {shown.chat: shown.text for shown in telegram.written()}
            await telegram.double.say("please", chat=telegram.chat(3), user="7")
            await until(30, lambda: any(shown.text == "Re: kill\n\nplease" for shown in telegram.written()))
            await crew.end()

    assert "The program crashed 3 times during this run, so Hermes stopped retrying. Write again" in said.pop("4")
    assert {chat: text.partition("\n")[0] for chat, text in said.items()} == {
        telegram.chat(person): f"Re: m{person}" for person in range(PEOPLE) if person != 3
    }
    assert crew.kills == 3


async def answered(side: Side, crew: Crew, count: int) -> None:
    """Begin the gateway again each time that it dies, until so many chats have a reply."""
    async with asyncio.timeout(150):
        while len({shown.chat for shown in side.written()}) < count:
            if crew.processes["gateway"].poll() is not None:
                crew.kill("gateway")
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_under_kills_from_outside_every_message_is_answered_and_none_is_refused(tmp_path: Path, full: bool):
    """One every two seconds; with `--full` 300 messages in ten minutes."""
    seconds, count = (600.0, 300) if full else (8.0, 12)
    chance = random.Random(1)

    def answer(heard: Heard) -> Answer:
        return Answer(pieces=(repeat(heard),), pace=Pace(first=chance.uniform(0.1, 1.2)))

    home = tmp_path / "home"
    home.mkdir()
    async with sides() as (telegram, *_), serving(openai_model(answer, keys=())) as model:
        (home / "config.yaml").write_text(configuration(model.url, [telegram]))
        with Crew(home, {"gateway": ("gateway", "run")}) as crew:
            await storm(telegram, crew, chance, seconds, count)
            open_then, calm = len(missing_of(telegram)), time.monotonic()
            await until(240, lambda: not missing_of(telegram))
            calm = time.monotonic() - calm
            await crew.end()

    with closing(sqlite3.connect(home / "hermes.db")) as database:
        states = dict(database.execute("SELECT state, count(*) FROM inbox GROUP BY state"))
    print(f"{crew.kills} kills, {states}, {open_then} open at the last one, answered {calm:.1f} s later")
    assert crew.kills
    assert set(states) == {
        "answered"
    }  # One that was heard while the gateway began is there twice: as it was passed on.
    assert sum(map(len, telegram.told.values())) == count
    assert not [shown.text for shown in telegram.written() if "died" in shown.text]


async def storm(side: Side, crew: Crew, chance: random.Random, seconds: float, count: int) -> None:
    """So many messages in so many seconds, and a kill every two of them, or when something was answered since the last:
    on a busy machine the program takes longer than that to begin."""
    said, began = 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        while said < min(count, round(count * passed / seconds * 1.2) + 1):
            await side.say(said, chance.randrange(side.people))
            said += 1
        seen = len(side.written())
        await asyncio.sleep(2.0)
        await until(90, lambda seen=seen: len(side.written()) > seen or not missing_of(side))
        crew.kill("gateway")
    for number in range(said, count):
        await side.say(number, chance.randrange(side.people))


async def until(seconds: float, ready: Callable[[], object]) -> None:
    async with asyncio.timeout(seconds):
        while not ready():
            await asyncio.sleep(0.05)
