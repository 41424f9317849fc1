"""A server of lines answers each client, and cuts all off when it ends."""

import asyncio
from contextlib import suppress

from tests.doubles.conversing import LOOPBACK, conversing


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)


async def test_each_client_has_a_conversation_of_its_own_until_the_server_ends():
    async with conversing(echo) as port:
        clients = [await asyncio.open_connection(LOOPBACK, port) for _ in range(2)]
        for number, (reader, writer) in enumerate(clients):
            writer.write(b"%d\n" % number)
            assert await reader.readline() == b"%d\n" % number

    for reader, writer in clients:
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert reader.at_eof() or reader.exception() is not None
        writer.close()
