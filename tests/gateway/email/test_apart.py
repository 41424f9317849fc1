"""A mail that is made to hold the gateway still ends alone, and every other is read as it is."""

import asyncio
import base64

import msgspec
import pytest

from hermes_agent.gateway.channel import NotNow
from hermes_agent.gateway.email.apart import parsed, read_apart
from hermes_agent.gateway.email.reading import Mail, Unreadable, read
from tests.holds import longest_hold

OWN = "hermes@agent.test"
HEAD = b"From: Ann <ann@people.test>\r\nTo: hermes@agent.test\r\nMessage-ID: <a@x>\r\n"
PICTURE = base64.encodebytes(bytes(range(256)) * 100)


async def test_a_mail_is_read_as_it_is():
    boundary = (
        b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>H\xc3\xb6\r\n'
    )
    file = b"--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n" + PICTURE + b"\r\n--b--\r\n"
    vouching = b"Authentication-Results: mx.test; dmarc=pass header.from=people.test\r\n"
    raw = HEAD + vouching + boundary + file

    mail = await read_apart(raw, OWN, "mx.test")

    assert mail == read(raw, OWN, "mx.test")
    assert (mail.text, len(mail.files[0].content), mail.vouched) == ("H\u00f6", 25_600, True)
    assert not (await read_apart(raw, OWN, "mx.other")).vouched


async def test_what_is_no_mail_says_why():
    with pytest.raises(Unreadable, match="does not name one sender"):
        await read_apart(b"Subject: x\r\n\r\nHello", OWN)

    assert "sender" in msgspec.msgpack.decode(parsed(b"", OWN, ""), type=str)
    assert msgspec.msgpack.decode(parsed(HEAD, OWN, ""), type=Mail) == read(HEAD, OWN)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "html",
    [
        # Each of 40,000 paragraphs opens 450 elements again.
        "<p>" + "".join(f"<b a{n}>" for n in range(450)) + "</p>" + "<p>x</p>" * 40_000,
        "<style>" + "p~p~p~p~p{display:none}" * 100 + "</style>" + "<p>x" * 100_000,
    ],
    ids=["all memory", "selectors"],
)
async def test_a_mail_that_takes_all_time_or_memory_ends_alone(html: str):
    held = asyncio.create_task(longest_hold())

    with pytest.raises(Unreadable, match="was ended"):
        await read_apart(HEAD + b"Content-Type: text/html\r\n\r\n" + html.encode(), OWN, work=1)

    held.cancel()
    assert await held < 0.5


async def test_where_no_process_can_be_started_a_mail_waits():
    with pytest.raises(NotNow):
        await read_apart(HEAD, "x" * 4_000_000)


async def test_where_the_process_fails_whatever_the_mail_is_a_mail_waits():
    with pytest.raises(NotNow, match="No mail can be read now"):
        await read_apart(HEAD, OWN, by="hermes_agent.gateway.email.nowhere:told")
