"""The gateway over each platform's own protocol: a person writes, and is answered once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest

from hermes_agent.gateway.channel import Channel, Needs
from hermes_agent.gateway.channels.email import CHANNEL as MAIL
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.doubles.email import OWN, mail_platform
from hermes_agent.testing.doubles.platform import Trouble
from tests.contracts.channels import MAKERS, Stage
from tests.gateway.email.dovecot import dovecot, program
from tests.gateway.house import eventually, opened

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


async def test_a_lost_answer_sends_nothing_twice_or_says_so(stage: Stage, tmp_path: Path):
    stage.double.chats.order(Trouble.DEAF, "send")
    async with opened(tmp_path, stage.kind, [Say("Hello, Ann.")], f"owners: ['{stage.person}']\nstream: false"):
        await stage.double.say("Hi", chat=stage.chat, user=stage.person)

        surely = stage.kind.abilities.keyed or stage.kind.abilities.read_back
        await eventually(lambda: stage.double.chats.calls["send"] + stage.double.chats.calls["find"] == 2)
        await eventually(lambda: ("repeat" in stage.double.chats.of(stage.chat)[-1].text) is not surely)
        assert len(stage.double.chats.of(stage.chat)) == 1 or not surely


@pytest.mark.slow
@pytest.mark.skipif(program() is None, reason="dovecot is not installed (apt install dovecot-imapd)")
async def test_two_people_write_mails_to_a_real_server(tmp_path: Path):
    async with mail_platform() as platform:
        with dovecot(OWN, "secret") as server:

            def make(needs: Needs) -> Channel:
                options = {**platform.options, "imap_port": str(server.port)}
                return MAIL.make(replace(needs, options=options, secret=lambda _: "secret"))

            def letter(sender: str, text: str, **headers: str) -> EmailMessage:
                mail = EmailMessage(policy=SMTP)
                mail["From"], mail["To"] = sender, headers.pop("To", OWN)
                for name, value in headers.items():
                    mail[name.replace("_", "-")] = value
                mail.set_content(text)
                return mail

            script = [Say("A cat."), Say(CODE), Say("Hello to both."), Say("Welcome back.")]
            people = f"owners: ['{ANN}']\nmembers: ['{BOB}']\ngroups: ['*']"
            async with opened(tmp_path, replace(MAIL, make=make), script, people) as model:
                picture = letter(ANN, "What is it?", Subject="Picture", Message_ID="<1@people.test>")
                picture.add_attachment(b"\x89PNG" * 4000, maintype="image", subtype="png", filename="a.png")
                server.deliver(picture.as_bytes())
                await eventually(lambda: len(platform.chats.of(ANN)) == 1)
                first = platform.chats.of(ANN)[0]

                again = {"Subject": "Re: Picture", "References": f"<1@people.test> <{first.id}>"}
                server.deliver(letter(ANN, "Write code.", Message_ID="<2@people.test>", **again).as_bytes())
                await eventually(lambda: len(platform.chats.of(ANN)) == 2)
                both = letter(BOB, "We are two.", To=f"{OWN}, {ANN}", Subject="Us", Message_ID="<3@people.test>")
                server.deliver(both.as_bytes())
                await eventually(lambda: len(platform.chats.of(f"{ANN},{BOB}")) == 1)
                server.restart()
                server.deliver(letter(BOB, "Still there?", Subject="Me", Message_ID="<4@people.test>").as_bytes())
                await eventually(lambda: len(platform.chats.of(BOB)) == 1)

            second = platform.chats.of(ANN)[1]
            assert (first.text, first.answers) == ("A cat.", "1@people.test")
            assert (second.thread, second.answers) == ("1@people.test", "2@people.test")
            assert "line_299 = 299" in second.text
            assert "A cat." in str(model.exchanges[1])
            assert "A cat." not in str(model.exchanges[2])
