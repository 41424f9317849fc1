"""One IMAP connection: what it gives, and how it ends."""

import asyncio
import datetime

import pytest

from hermes_agent.gateway.channel import NotNow, TokenRefused
from hermes_agent.gateway.email.mailbox import Address, Login, Mailbox
from tests.doubles.email import mail_platform

DAY = datetime.date(2026, 11, 1)


@pytest.fixture
async def platform():
    async with mail_platform() as made:
        yield made


def mailbox(platform, password: str = "secret", security: str = "none") -> Mailbox:
    address = Address(host="127.0.0.1", port=platform.imap_port, security=security)
    return Mailbox(address, Login(user="u", password=password, folder="INBOX"))


@pytest.fixture
async def box(platform):
    made = mailbox(platform)
    await made.open()
    yield made
    await made.close()


async def test_unread_mail_is_unread_until_it_is_marked(platform, box):
    await platform.say("one")
    await platform.say("two")
    assert await box.unread(DAY) == ["1", "2"]
    assert b"one" in await box.raw("1")

    await box.mark_read("1")

    assert await box.unread(DAY) == ["2"]


async def test_a_mail_is_measured_and_read_in_part(platform, box):
    await platform.say("x" * 5000)

    assert await box.size("1") > 5000
    assert len(await box.raw("1", 100)) == 100
    assert b"xxx" not in await box.head("1", 4000)
    assert len(await box.head("1", 10)) == 10


async def test_a_mail_that_is_gone_is_nothing(box):
    assert await box.size("7") == 0
    assert await box.raw("7") == b""


async def test_waiting_ends_when_mail_comes(platform, box):
    assert await box.unread(DAY) == []
    waiting = asyncio.create_task(box.wait())
    while not platform.folder.waiting:
        await asyncio.sleep(0.01)

    await platform.say("hello")

    await asyncio.wait_for(waiting, 10)


async def test_mail_that_came_while_searching_is_not_waited_for(platform, box):
    await box.unread(DAY)
    box._box.client.untagged_responses["EXISTS"] = [b"1"]

    await asyncio.wait_for(box.wait(), 10)


async def test_waiting_can_be_cut(platform, box):
    assert await box.unread(DAY) == []
    waiting = asyncio.create_task(box.wait())
    while not platform.folder.waiting:
        await asyncio.sleep(0.01)

    await box.close()

    with pytest.raises(NotNow):
        await asyncio.wait_for(waiting, 10)


async def test_a_server_without_idle_is_looked_at_again_later(platform):
    platform.folder.without_idle = True
    box = mailbox(platform)
    await box.open()

    waiting = asyncio.create_task(box.wait())
    await asyncio.sleep(0.1)

    assert not waiting.done()
    waiting.cancel()
    await box.close()


async def test_a_broken_connection_is_not_now(platform, box):
    platform.folder.cut = 1

    with pytest.raises(NotNow, match="broke"):
        await box.unread(DAY)


async def test_a_wrong_password_is_one(platform):
    box = mailbox(platform, "wrong")

    with pytest.raises(TokenRefused, match="EMAIL_PASSWORD"):
        await box.open()
    await box.close()


@pytest.mark.parametrize("trouble", ["UNAVAILABLE", "INUSE"])
async def test_a_server_in_trouble_says_nothing_of_the_password(platform, trouble):
    platform.folder.trouble = trouble
    box = mailbox(platform)

    with pytest.raises(NotNow, match="for now"):
        await box.open()
    await box.close()


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_server_that_does_not_encrypt_gets_no_password(platform, security):
    box = mailbox(platform, security=security)

    with pytest.raises(NotNow, match="cannot be reached"):
        await box.open()
    await box.close()


async def test_closing_what_was_never_open_is_harmless(platform):
    await mailbox(platform).close()


async def test_mail_that_comes_between_the_look_and_the_waiting_is_not_waited_for(platform, box):
    assert await box.unread(DAY) == []
    await platform.say("one")

    async with asyncio.timeout(5):
        await box.wait()

    assert await box.unread(DAY) == ["1"]
