"""The standard library's client finds a folder's mails, and a wrong password is refused."""

import asyncio
import imaplib

import pytest

from tests.doubles.conversing import LOOPBACK
from tests.doubles.imap import Folder, imap_server


async def test_a_client_counts_the_mails_of_the_folder():
    folder = Folder()
    folder.put(b"Subject: one\r\n\r\nHi\r\n")
    folder.put(b"Subject: two\r\n\r\nHi\r\n")

    def count() -> bytes:
        with imaplib.IMAP4(LOOPBACK, port) as client:
            client.login("u", "secret")
            return bytes(client.select()[1][0] or b"")

    def refused() -> None:
        with imaplib.IMAP4(LOOPBACK, port) as client, pytest.raises(imaplib.IMAP4.error):
            client.login("u", "wrong")

    async with imap_server(folder) as port:
        assert await asyncio.to_thread(count) == b"2"
        await asyncio.to_thread(refused)
