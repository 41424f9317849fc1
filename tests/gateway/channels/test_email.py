"""The email channel beyond the contract: who is heard, what is too large, what cannot be done."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from hermes_agent.core.chat import Attachment, Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import ChannelError, Heard, MessageGone, NeverHere, Part, Said
from hermes_agent.gateway.channels.email import CHANNEL, UNCHECKED, EmailChannel
from tests.contracts.channels import needs
from tests.doubles.email import OWN, mail_platform

ANN = Conversation(platform="email", chat="ann@people.test")


@pytest.fixture
async def platform():
    async with mail_platform() as made:
        yield made


def channel(platform, tmp_path, **options: str) -> EmailChannel:
    made = CHANNEL.make(needs(tmp_path, {**platform.options, **options}))
    assert isinstance(made, EmailChannel)
    return made


async def heard(channel: EmailChannel, platform) -> list[Said]:
    """What is told of the mail that is there."""
    found: list[Said] = []

    async def hear(each: Heard) -> str:
        assert isinstance(each, Said)
        found.append(each)
        return ""

    listening = asyncio.create_task(channel.listen(hear))
    async with asyncio.timeout(25):  # Each mail is read in a process of its own.
        while platform.received() < len(platform.folder.mails):
            await asyncio.sleep(0.01)
    listening.cancel()
    with suppress(asyncio.CancelledError):
        await listening
    return found


def put(platform, headers: str, body: str = "Hello") -> None:
    platform.folder.put(f"To: {OWN}\r\n{headers}\r\n\r\n{body}".encode())


@pytest.mark.parametrize(
    "headers",
    [
        "From: ann@people.test\r\nAuto-Submitted: auto-replied",
        "From: ann@people.test\r\nList-Id: <x>",
        f"From: {OWN}",
        "From: ann@people.test\r\nMessage-ID: <hermes.0123@agent.test>",
        "From: ann@people.test\r\nCc: " + ", ".join(f"p{n}@x.test" for n in range(30)),
        "Subject: nobody",
    ],
)
async def test_loops_automatic_mail_and_circulars_are_passed_over(platform, tmp_path, headers):
    put(platform, headers)

    assert await heard(channel(platform, tmp_path), platform) == []


async def test_a_sender_that_the_server_does_not_vouch_for_is_passed_over(platform, tmp_path):
    put(platform, "From: ann@people.test", "forged")
    put(
        platform, "Authentication-Results: mx.test; dmarc=pass header.from=people.test\r\nFrom: ann@people.test", "true"
    )

    found = await heard(channel(platform, tmp_path, authserv_id="mx.test"), platform)

    assert [said.text for said in found] == ["true"]
    assert found[0].sender.groups == ("@people.test",)


@pytest.mark.parametrize(("server", "told"), [("", [UNCHECKED]), ("mx.own.test", [""])])
async def test_the_owner_is_told_where_nobody_checks_who_writes(platform, tmp_path, server, told):
    notes: list[str] = []
    given = needs(tmp_path, {**platform.options, "authserv_id": server})
    put(platform, "From: ann@people.test")
    await heard(CHANNEL.make(replace(given, note=notes.append)), platform)

    assert notes == told


async def test_a_first_mail_comes_with_its_subject_and_a_command_without(platform, tmp_path):
    put(platform, "From: ann@people.test\r\nSubject: News", "What is new?")
    put(platform, "From: ann@people.test\r\nSubject: Please", "/stop")
    put(platform, "From: ann@people.test\r\nSubject: Re: News\r\nIn-Reply-To: <a@x>", "And now?")

    found = await heard(channel(platform, tmp_path), platform)

    assert [said.text for said in found] == ["News\n\nWhat is new?", "/stop", "And now?"]


async def test_of_a_mail_that_is_too_large_the_beginning_is_read(platform, tmp_path):
    put(platform, "From: ann@people.test", "x" * 31_000_000)

    made = channel(platform, tmp_path)
    (said,) = await heard(made, platform)

    assert said.text.startswith("xxx")
    assert len(said.text) < 400_000
    with pytest.raises(NeverHere, match="larger than 30 MB"):
        await made.fetch(said.media[0], 10**9)


async def test_what_stands_behind_the_beginning_of_a_mail_is_fetched_later_and_elsewhere(platform, tmp_path):
    line = "All work and no play. " * 3 + "\n"
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"], mail["Message-ID"] = "ann@people.test", "hermes@agent.test", "<1@people.test>"
    mail.set_content(line * 5900)
    mail.add_attachment(b"x" * 500_000, maintype="application", subtype="pdf", filename="a.pdf")
    platform.folder.put(mail.as_bytes())

    (said,) = await heard(channel(platform, tmp_path), platform)
    (one, content), (two, rest) = await channel(platform, tmp_path).fetch(said.media[0], 10**9)

    assert (one.name, one.media_type, content) == ("a.pdf", "application/pdf", b"x" * 500_000)
    assert said.text.startswith("All work")
    assert two.name == "the rest of this mail.txt"
    assert f"{said.text}{rest.decode()}".replace("\r\n", "\n").strip() == (line * 5900).strip()


async def test_a_mail_that_is_gone_has_no_files(platform, tmp_path):
    put(platform, "From: ann@people.test\r\nMessage-ID: <1@x>\r\nContent-Type: application/pdf", "content")
    (said,) = await heard(channel(platform, tmp_path), platform)
    platform.folder.mails[0].content = b"From: bob@people.test\r\nMessage-ID: <2@x>\r\n\r\nHi"

    with pytest.raises(NeverHere, match="not in its folder"):
        await channel(platform, tmp_path).fetch(said.media[0], 10**9)


async def test_a_file_is_fetched(platform, tmp_path):
    put(platform, "From: ann@people.test\r\nContent-Type: application/pdf", "content")

    made = channel(platform, tmp_path)
    (said,) = await heard(made, platform)

    assert await made.fetch(said.media[0], 10**9) == b"content"
    assert await channel(platform, tmp_path).fetch(said.media[0], 10**9) == b"content"


async def test_a_thread_that_nobody_remembers_is_still_answered_in_it(platform, tmp_path):
    to = Conversation(platform="email", chat="ann@people.test", thread="root@x")

    await channel(platform, tmp_path).send(to, Part(text="Hello", answers="last@x"), "k")

    assert "References: <root@x> <last@x>" in platform.chats.of("ann@people.test")[0].written


async def test_a_mailbox_that_cannot_be_asked_does_not_hold_an_answer_back(platform, tmp_path):
    platform.folder.cut = 9
    to = Conversation(platform="email", chat="ann@people.test", thread="root@x")

    await channel(platform, tmp_path).send(to, Part(text="Hello"), "k")

    assert platform.chats.of("ann@people.test")[0].answers == "root@x"


async def test_a_stranger_who_names_a_thread_is_not_taken_for_a_part_of_it(platform, tmp_path):
    put(platform, "From: ann@people.test\r\nSubject: Ours\r\nMessage-ID: <root@x>")
    put(platform, "From: eve@people.test\r\nSubject: Mine\r\nReferences: <root@x>\r\nMessage-ID: <evil@x>\r\nBroken")
    to = Conversation(platform="email", chat="ann@people.test", thread="root@x")

    await channel(platform, tmp_path).send(to, Part(text="Hello"), "k")

    assert "Subject: Re: Ours" in platform.chats.of("ann@people.test")[0].written


@pytest.mark.parametrize("chat", ["", "nobody", OWN, "a@x.test, b@x.test\r\nBcc: c@x.test"])
async def test_what_is_no_address_gets_nothing(platform, tmp_path, chat):
    with pytest.raises(NeverHere, match="not a mail address"):
        await channel(platform, tmp_path).send(Conversation(platform="email", chat=chat), Part(text="x"), "k")


async def test_a_file_that_is_not_there_is_said_so(platform, tmp_path):
    file = Attachment(path=str(tmp_path / "none"), name="none")

    with pytest.raises(NeverHere, match="none cannot be read"):
        await channel(platform, tmp_path).send(ANN, Part(text="x", file=file), "k")


async def test_a_mail_that_was_sent_stays(platform, tmp_path):
    made = channel(platform, tmp_path)

    with pytest.raises(MessageGone):
        await made.edit(ANN, "1", Part(text="x"))
    with pytest.raises(MessageGone):
        await made.delete(ANN, "1")
    assert await made.find(ANN, Part(text="x"), "k", 0) is None


async def test_a_wrong_password_is_told(platform, tmp_path):
    platform.folder.password = "other"

    with pytest.raises(ChannelError, match="EMAIL_PASSWORD"):
        await channel(platform, tmp_path).check()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"address": ""}, "address is missing"),
        ({"imap_host": ""}, "imap_host is missing"),
        ({"smtp_port": "many"}, "smtp_port is not a number"),
        ({"imap_security": "ssl"}, "is one of tls"),
        ({"imap_host": "mail.example.org"}, "only for a server on this machine"),
    ],
)
async def test_what_is_missing_is_said(platform, tmp_path, options, words):
    with pytest.raises(ConfigError, match=words):
        channel(platform, tmp_path, **options)


async def test_a_password_is_needed(platform, tmp_path):
    with pytest.raises(ConfigError, match="EMAIL_PASSWORD is missing"):
        CHANNEL.make(needs(tmp_path, platform.options, secret=""))


async def test_mails_that_were_made_to_end_hearing_end_alone(platform, tmp_path):
    opened = "".join(f"<b a{n}>" for n in range(450))
    put(platform, f"From: {'(' * 2000}")
    put(platform, "From: ann@people.test\r\nContent-Type: text/html", f"<p>{opened}</p>{'<p>x</p>' * 20_000}")
    put(platform, "From: ann@people.test", "And now?")

    found = await heard(channel(platform, tmp_path), platform)

    assert [said.text for said in found] == ["And now?"]
