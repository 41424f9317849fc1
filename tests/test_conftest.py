import asyncio
import os
import socket
import tempfile
from pathlib import Path

import pytest

from tests.conftest import SECRET, NetworkRefused


def test_a_socket_may_not_leave_this_machine():
    with socket.socket() as opened, pytest.raises(NetworkRefused):
        opened.connect(("192.0.2.1", 80))


def test_a_name_may_not_be_looked_up():
    with pytest.raises(NetworkRefused):
        socket.getaddrinfo("example.org", 443)


async def test_asyncio_may_not_leave_this_machine():
    with pytest.raises(NetworkRefused):
        await asyncio.open_connection("192.0.2.1", 80)


async def test_loopback_works():
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


def test_no_secret_and_no_setting_of_the_person_reaches_a_test():
    assert [name for name in os.environ if SECRET.search(name)] == []


def test_home_is_a_temporary_folder(home: Path):
    assert os.environ["HERMES_HOME"] == str(home)
    assert Path(tempfile.gettempdir()) in Path.home().parents
