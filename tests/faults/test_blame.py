"""One message kills the gateway each time that it is worked on, among others that do not."""

import asyncio
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Answer, Heard, Pace, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.faults.storm import Crew, Side, configuration, sides

WORKING = 1.0
"""Seconds that a run of the others takes: each is in the middle of it when the program dies."""


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_of_many_runs_only_the_one_that_the_program_dies_of_is_given_up(tmp_path: Path):
    crews: list[Crew] = []

    def answer(heard: Heard) -> Answer:
        text = heard.messages[-1].text
        if "kill" not in text:
            return Answer(pieces=(Say(f"Re: {text}"),), pace=Pace(first=WORKING))
        asyncio.get_running_loop().call_later(WORKING / 4, crews[0].processes["gateway"].kill)
        return Answer(pieces=(Say("Never."),), pace=Pace(first=60.0))

    home = tmp_path / "home"
    home.mkdir()
    async with sides() as (telegram, *_), serving(openai_model(answer, keys=())) as model:
        (home / "config.yaml").write_text(configuration(model.url, [telegram]))
        for person in range(7):
            await telegram.double.say("kill" if person == 3 else f"m{person}", chat=telegram.chat(person), user="7")
        with Crew(home, {"gateway": ("gateway", "run")}) as crew:
            crews.append(crew)
            await answered(telegram, crew, 7)
            await crew.end()

    said = {shown.chat: shown.text for shown in telegram.written()}
    assert "the program died 5 times while it worked on this" in said.pop("4")
    assert {chat: text.partition("\n")[0] for chat, text in said.items()} == {
        telegram.chat(person): f"Re: m{person}" for person in range(7) if person != 3
    }
    assert crew.kills == 5


async def answered(side: Side, crew: Crew, count: int) -> None:
    """Begin the gateway again each time that it dies, until so many chats have a reply."""
    async with asyncio.timeout(150):
        while len({shown.chat for shown in side.written()}) < count:
            if crew.processes["gateway"].poll() is not None:
                crew.kill("gateway")
            await asyncio.sleep(0.05)
