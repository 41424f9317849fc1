"""Two people write mails to a real IMAP server and are answered over a real SMTP server: alone, as a group, on a list,
in a thread, with a picture, with long code, over a restart of the server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from email.message import EmailMessage, Message
from email.policy import SMTP
from pathlib import Path

import pytest

from hermes_agent.core.messages import Image
from hermes_agent.gateway.channel import Channel, Needs
from hermes_agent.gateway.channels.email import CHANNEL
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.testing.model_servers import ModelServer
from tests.gateway.email.dovecot import Dovecot, dovecot, program
from tests.gateway.email.outgoing import OWN, Outgoing, smtp
from tests.gateway.harness import eventually, opened

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(program() is None, reason="dovecot is not installed (apt install dovecot-imapd)"),
    pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS"),  # of aiosmtpd; this is loopback
]
ANN, BOB = "ann@people.test", "bob@people.test"
CODE = "```python\n" + "\n".join(f"line_{number} = {number}" for number in range(2000)) + "\n```"
REPLIES = {
    "What is it?": "A cat.",
    "Write code.": CODE,
    "We are two.": "Hello to both.",
    "Still there?": "Welcome back.",
    "While it was away": "I see it now.",
}


def reply(heard: Heard) -> Say:
    """The answer to what was said last."""
    last = str(heard.messages[-1])
    return next(Say(answer) for words, answer in REPLIES.items() if words in last)


@dataclass(slots=True, kw_only=True)
class Journey:
    server: Dovecot
    outgoing: Outgoing
    model: ModelServer

    def write(self, sender: str, text: str, id_: str, **headers: str) -> None:
        self.server.deliver(letter(sender, text, id_, **headers).as_bytes())

    async def answers(self, count: int) -> list[Message]:
        await eventually(lambda: len(self.outgoing.mails) >= count, 40)
        return self.outgoing.mails


def letter(sender: str, text: str, id_: str, **headers: str) -> EmailMessage:
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"], mail["Message-ID"] = sender, headers.pop("To", OWN), f"<{id_}@people.test>"
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail


def words(mail: Message) -> str:
    plain = next(part for part in mail.walk() if part.get_content_type() == "text/plain").get_payload(decode=True)
    assert isinstance(plain, bytes)
    return plain.decode().replace("\r\n", "\n").strip()


@asynccontextmanager
async def journey(folder: Path) -> AsyncIterator[Journey]:
    outgoing = Outgoing()
    async with smtp(outgoing) as port:
        with dovecot(OWN, "secret") as server:
            options = {
                "address": OWN,
                "imap_host": "127.0.0.1",
                "imap_port": str(server.port),
                "imap_security": "none",
                "smtp_host": "127.0.0.1",
                "smtp_port": str(port),
                "smtp_security": "none",
            }

            def make(needs: Needs) -> Channel:
                return CHANNEL.make(replace(needs, options=options, secret=lambda _: "secret"))

            people = f"owners: ['{ANN}']\nmembers: ['{BOB}']\ngroups: ['*']"
            async with opened(folder, replace(CHANNEL, make=make), reply, people) as model:
                yield Journey(server=server, outgoing=outgoing, model=model)


async def test_a_picture_is_looked_at_and_long_code_arrives_whole_in_its_thread(tmp_path: Path):
    async with journey(tmp_path) as at:
        picture = letter(ANN, "What is it?", "1", Subject="Picture")
        picture.add_attachment(b"\x89PNG" * 4000, maintype="image", subtype="png", filename="a.png")
        at.server.deliver(picture.as_bytes())
        (first,) = await at.answers(1)
        again = {"Subject": "Re: Picture", "References": f"<1@people.test> {first['Message-ID']}"}
        at.write(ANN, "Write code.", "2", **again)
        _, second = await at.answers(2)

    assert (words(first), first["In-Reply-To"]) == ("A cat.", "<1@people.test>")
    assert [isinstance(part, Image) for part in at.model.asked[0].messages[-1].parts].count(True) == 1
    assert words(second) == CODE
    assert (second["In-Reply-To"], second["References"].split()[0]) == ("<2@people.test>", "<1@people.test>")
    assert "A cat." in str(at.model.exchanges[1])


async def test_a_group_is_answered_together_and_a_list_is_not(tmp_path: Path):
    async with journey(tmp_path) as at:
        at.write(BOB, "Buy this list", "1", Subject="List", List_Id="<us.people.test>", Precedence="list")
        at.write(BOB, "We are two.", "2", Subject="Us", Cc=ANN)
        (answer,) = await at.answers(1)
        await eventually(lambda: at.server.seen() == 2)
        at.write(
            ANN, "Write code.", "3", Subject="Re: Us", Cc=BOB, References=f"<2@people.test> {answer['Message-ID']}"
        )
        _, second = await at.answers(2)

    assert words(answer) == "Hello to both."
    assert at.outgoing.people == [[ANN, BOB]] * 2
    assert second["References"].split()[0] == "<2@people.test>"
    assert len(at.model.exchanges) == 2
    assert "Hello to both." in str(at.model.exchanges[1])  # The thread is one conversation of the two.


async def test_a_file_of_twenty_megabytes_is_in_the_workspace(tmp_path: Path):
    content = bytes(range(256)) * (20_000_000 // 256)
    async with journey(tmp_path) as at:
        mail = letter(ANN, "What is it?", "1", Subject="Large")
        mail.add_attachment(content, maintype="application", subtype="x-thing", filename="large.bin")
        at.server.deliver(mail.as_bytes())
        await at.answers(1)

    (kept,) = (tmp_path / "home" / "workspace" / "received").iterdir()
    assert kept.read_bytes() == content


async def test_it_goes_on_after_the_server_restarted_and_reads_what_came_meanwhile(tmp_path: Path):
    async with journey(tmp_path) as at:
        at.write(ANN, "What is it?", "1", Subject="Before")
        await at.answers(1)
        at.server.stop()
        at.write(BOB, "While it was away", "2", Subject="Away")
        at.server.restart()
        at.write(BOB, "Still there?", "3", Subject="Back")
        answers = await at.answers(3)

    assert sorted(words(mail) for mail in answers[1:]) == ["I see it now.", "Welcome back."]
    assert at.outgoing.people == [[ANN], [BOB], [BOB]]
