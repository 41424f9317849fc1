"""The email channel against a real IMAP server (dovecot) and aiosmtpd, which write and read mail their own way."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP as RFC

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.gateway.channel import ChannelError, Heard, NotNow, Part, Said, TokenRefused
from hermes_agent.gateway.channels.email import CHANNEL, EmailChannel
from tests.contracts.channels import needs
from tests.gateway.email.dovecot import Dovecot, dovecot, program
from tests.gateway.email.outgoing import OWN, Outgoing, smtp

pytestmark = [
    pytest.mark.skipif(program() is None, reason="dovecot is not installed (apt install dovecot-imapd)"),
    pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS"),  # of aiosmtpd; this is loopback
]
OPTIONS = {"imap_host": "127.0.0.1", "imap_security": "none", "smtp_host": "127.0.0.1", "smtp_security": "none"}


@pytest.fixture(scope="module")
def running() -> Iterator[Dovecot]:
    with dovecot(OWN, "secret") as server:
        yield server


@pytest.fixture
def outgoing() -> Outgoing:
    return Outgoing()


@pytest.fixture
async def smtp_port(outgoing: Outgoing) -> AsyncIterator[int]:
    async with smtp(outgoing) as port:
        yield port


def options(running: Dovecot, smtp_port: int) -> dict[str, str]:
    return {**OPTIONS, "address": OWN, "imap_port": str(running.port), "smtp_port": str(smtp_port)}


@pytest.fixture
async def channel(running: Dovecot, smtp_port: int, tmp_path) -> AsyncIterator[EmailChannel]:
    made = CHANNEL.make(needs(tmp_path, options(running, smtp_port)))
    assert isinstance(made, EmailChannel)
    yield made
    await made.close()


class Ear:
    def __init__(self) -> None:
        self.heard: list[Said] = []

    async def __call__(self, heard: Heard) -> str:
        assert isinstance(heard, Said)
        self.heard.append(heard)
        return ""

    async def until(self, ready: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not ready():
                await asyncio.sleep(0.02)


@pytest.fixture
async def ear(channel: EmailChannel) -> AsyncIterator[Ear]:
    ear = Ear()

    async def listening() -> None:
        while True:
            with suppress(NotNow):
                await channel.listen(ear)
            await asyncio.sleep(0.1)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(listening())
        yield ear
        task.cancel()


def mail(text: str, *, id_: str, sender: str = "Ann <ann@people.test>", **headers: str) -> EmailMessage:
    made = EmailMessage(policy=RFC)
    made["From"], made["To"], made["Message-ID"] = sender, OWN, f"<{id_}>"
    for name, value in headers.items():
        del made[name]
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return made


async def test_a_mail_is_heard_while_idling_and_answered_in_its_thread(running, channel, ear, outgoing):
    await asyncio.sleep(0.3)  # So that IDLE is under way.
    running.deliver(mail("How are you?", id_="one@people.test", Subject="Grüße").as_bytes())
    await ear.until(lambda: bool(ear.heard))

    await channel.send(ear.heard[0].where, Part(text="**Well**, thank you."), "k1")

    assert ear.heard[0].text == "Grüße\n\nHow are you?"
    answer = outgoing.mails[0]
    assert (answer["In-Reply-To"], answer["References"]) == ("<one@people.test>", "<one@people.test>")
    assert str(RFC.header_factory("Subject", answer["Subject"])) == "Re: Grüße"
    assert outgoing.people == [["ann@people.test"]]
    await ear.until(lambda: running.seen() >= 1)


async def test_a_thread_goes_on_after_a_restart_of_the_gateway(running, channel, ear, outgoing, smtp_port, tmp_path):
    running.deliver(mail("First", id_="two@people.test", Subject="A plan").as_bytes())
    running.deliver(
        mail("Second", id_="three@people.test", Subject="Re: A plan", References="<two@people.test>").as_bytes()
    )
    await ear.until(lambda: len(ear.heard) == 2)
    fresh = CHANNEL.make(needs(tmp_path, options(running, smtp_port)))

    await fresh.send(ear.heard[1].where, Part(text="Yes"), "k2")
    await fresh.close()

    assert ear.heard[0].where == ear.heard[1].where
    assert outgoing.mails[0]["References"] == "<two@people.test> <three@people.test>"
    assert outgoing.mails[0]["In-Reply-To"] == "<three@people.test>"


async def test_a_group_gets_the_answer_and_its_picture_is_heard(running, channel, ear, outgoing):
    made = mail("Look", id_="four@people.test", Subject="Us", To=f"{OWN}, Bob <bob@people.test>")
    made.add_attachment(b"\x89PNG" * 9000, maintype="image", subtype="png", filename="sea.png")
    running.deliver(made.as_bytes())
    await ear.until(lambda: bool(ear.heard))

    await channel.send(ear.heard[0].where, Part(text="Nice", answers="four@people.test"), "k3")

    where = ear.heard[0].where
    assert (where.chat_kind, where.chat) == ("group", "ann@people.test,bob@people.test")
    assert outgoing.people == [["ann@people.test", "bob@people.test"]]
    assert await channel.fetch(ear.heard[0].media[0], 10**9) == b"\x89PNG" * 9000


@pytest.mark.slow
async def test_it_listens_again_after_the_server_restarted(running, ear):
    await asyncio.sleep(0.3)
    await asyncio.to_thread(running.restart)

    running.deliver(mail("Still there?", id_=f"{time.time()}@people.test").as_bytes())

    await ear.until(lambda: bool(ear.heard))
    assert ear.heard[0].text == "Still there?"


async def test_a_long_answer_with_code_arrives_whole(channel, outgoing):
    code = "\n".join(f"line_{number} = {number}" for number in range(2000))

    await channel.send(Conversation(platform="email", chat="ann@people.test"), Part(text=f"```\n{code}\n```"), "k4")

    plain, drawn = (part.get_payload(decode=True) for part in outgoing.mails[0].walk() if not part.is_multipart())
    assert isinstance(plain, bytes)
    assert isinstance(drawn, bytes)
    assert "line_1999 = 1999" in plain.decode()
    assert "<pre><code>line_0 = 0" in drawn.decode()


async def test_a_wrong_password_is_a_sentence(running, smtp_port, tmp_path):
    channel = CHANNEL.make(needs(tmp_path, options(running, smtp_port), secret="wrong"))

    with pytest.raises(TokenRefused, match="EMAIL_PASSWORD"):
        await channel.listen(Ear())
    with pytest.raises(TokenRefused, match="EMAIL_PASSWORD"):
        await channel.send(Conversation(platform="email", chat="ann@people.test"), Part(text="Hi"), "k5")


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_the_connection_is_encrypted_and_its_certificate_checked(
    running, smtp_port, tmp_path, monkeypatch, security
):
    port = running.tls_port if security == "tls" else running.port
    given = {**options(running, smtp_port), "imap_security": security, "imap_port": str(port)}
    channel = CHANNEL.make(needs(tmp_path, given))
    with pytest.raises(ChannelError, match="certificate"):
        await channel.check()
    monkeypatch.setenv("SSL_CERT_FILE", str(running.folder / "cert.pem"))
    assert ssl.get_default_verify_paths().cafile == str(running.folder / "cert.pem")

    await channel.check()
