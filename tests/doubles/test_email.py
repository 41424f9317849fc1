"""The mail double speaks IMAP and SMTP as the standard library's clients do."""

import asyncio
import imaplib
import smtplib

import pytest

from hermes_agent.testing.platform import Trouble
from tests.doubles.conversing import LOOPBACK
from tests.doubles.email import mail_platform

MAIL = "From: hermes@agent.test\r\nMessage-ID: <1@agent.test>\r\n\r\nHello"


@pytest.fixture
async def platform():
    async with mail_platform() as made:
        yield made


async def test_the_standard_librarys_imap_client_reads_it(platform):
    await platform.say("hello")

    def reads():
        with imaplib.IMAP4(LOOPBACK, platform.imap_port) as client:
            client.login("u", "secret")
            client.select()
            assert client.noop()[0] == "OK"
            assert client.uid("SEARCH", "HEADER", "Message-ID", '"1001"')[1] == [b"1"]
            with pytest.raises(client.error):
                client.uid("COPY", "1", "x")
            return client.uid("FETCH", "1", "(BODY.PEEK[])")[1]

    ((_, content), _) = await asyncio.to_thread(reads)
    assert b"hello" in content
    with pytest.raises(AssertionError):
        await platform.press("1", 0)


async def test_the_standard_librarys_smtp_client_writes_to_it(platform):
    def writes():
        with smtplib.SMTP(LOOPBACK, platform.smtp_port, local_hostname="localhost") as client:
            client.login("u", "secret")
            client.noop()
            client.sendmail("hermes@agent.test", ["b@x.test", "a@x.test"], MAIL)

    await asyncio.to_thread(writes)

    assert platform.chats.of("a@x.test,b@x.test")[0].text == "Hello"


async def test_what_it_refuses_was_not_taken(platform):
    platform.chats.order(Trouble.GONE, "send")

    def writes():
        with smtplib.SMTP(LOOPBACK, platform.smtp_port, local_hostname="localhost") as client:
            client.login("u", "secret")
            client.sendmail("hermes@agent.test", ["a@x.test"], MAIL)

    with pytest.raises(smtplib.SMTPRecipientsRefused):
        await asyncio.to_thread(writes)
    assert platform.taken == []
