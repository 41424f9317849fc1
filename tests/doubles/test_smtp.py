"""What the standard library's client hands over is taken, for whom it was."""

import asyncio
import smtplib

from tests.doubles.conversing import LOOPBACK
from tests.doubles.smtp import Desk, Taken, smtp_server


async def test_a_mail_is_taken_for_those_it_is_for():
    taken: list[Taken] = []

    def write() -> None:
        with smtplib.SMTP(LOOPBACK, port, local_hostname="localhost") as client:
            client.login("u", "secret")
            client.sendmail("a@x.test", ["b@x.test", "c@x.test"], b"Subject: s\r\n\r\n.Hi\r\n")

    async with smtp_server(Desk(password="secret", trouble=lambda: None, take=taken.append)) as port:
        await asyncio.to_thread(write)

    (mail,) = taken
    assert mail.to == ("b@x.test", "c@x.test")
    assert b"\r\n.Hi" in mail.content
