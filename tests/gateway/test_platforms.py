"""The gateway over each platform's own protocol: a person writes, and is answered once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.platform import Trouble
from hermes_agent.testing.scripted import ScriptedModel
from tests.contracts.channels import MAKERS, Stage
from tests.doubles.discord import DiscordPlatform
from tests.doubles.email import MailPlatform
from tests.doubles.slack import SlackPlatform
from tests.doubles.telegram import TelegramDouble
from tests.gateway.harness import eventually, opened

ANN, BOB = "ann@people.test", "bob@people.test"
CODE = "```python\n" + "\n".join(f"line_{number} = {number}" for number in range(300)) + "\n```"


@pytest.fixture(params=["discord", "email", "matrix", "slack", "telegram"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with MAKERS[request.param](tmp_path) as made:
        yield replace(made, kind=replace(made.kind, make=lambda _: made.channel))


async def test_what_a_person_says_is_answered_in_the_same_chat(stage: Stage, tmp_path: Path):
    async with opened(tmp_path, stage.kind, [Say("Hello, Ann.")], f"owners: ['{stage.person}']"):
        await stage.double.say("Hi", chat=stage.chat, user=stage.person)
        await stage.double.again()

        await eventually(lambda: [each.text for each in stage.double.chats.of(stage.chat)] == ["Hello, Ann."])


@pytest.mark.parametrize("stage", ["discord", "email", "slack", "telegram"], indirect=True)
async def test_a_message_that_is_told_after_a_newer_one_is_answered_too(stage: Stage, tmp_path: Path):
    double = stage.double
    assert isinstance(double, DiscordPlatform | MailPlatform | SlackPlatform | TelegramDouble)
    replies = {"newer": "Re: newer.", "older": "Re: older."}
    script = ScriptedModel(lambda heard: Say(replies[heard.messages[-1].text.strip()]))
    async with opened(tmp_path, stage.kind, script, f"owners: ['{stage.person}']"):
        double.holding = True
        await double.say("older", chat=stage.chat, user=stage.person)
        double.holding = False
        await double.say("newer", chat=stage.chat, user=stage.person)
        await eventually(lambda: len(double.chats.of(stage.chat)) == 1)
        await double.tell_late()
        await double.again()

        await eventually(lambda: len(double.chats.of(stage.chat)) == 2)
        assert [shown.text for shown in double.chats.of(stage.chat)] == ["Re: newer.", "Re: older."]


async def test_a_lost_answer_sends_nothing_twice_or_says_so(stage: Stage, tmp_path: Path):
    stage.double.chats.order(Trouble.DEAF, "send")
    async with opened(tmp_path, stage.kind, [Say("Hello, Ann.")], f"owners: ['{stage.person}']\nstream: false"):
        await stage.double.say("Hi", chat=stage.chat, user=stage.person)

        surely = stage.kind.abilities.keyed or stage.kind.abilities.read_back
        await eventually(lambda: stage.double.chats.calls["send"] + stage.double.chats.calls["find"] == 2)
        await eventually(lambda: ("repeat" in stage.double.chats.of(stage.chat)[-1].text) is not surely)
        assert len(stage.double.chats.of(stage.chat)) == 1 or not surely
