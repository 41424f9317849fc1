"""What a walled command connects to: its session's servers and what is allowed, whatever it does to the call."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import Command, Ended, Running
from hermes_agent.sandbox.seccomp import is_supported
from hermes_agent.sandbox.walls import SYSTEM, Walls
from tests.sandbox.escapes import listening

pytestmark = pytest.mark.skipif(not is_supported(), reason="this kernel hands no connection over")

SERVES = """
import os, socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    client.sendall(b"served")
    client.close()
"""
READABLE = (*SYSTEM, sys.prefix, sys.base_prefix)
ASKS = "exec 3<>/dev/tcp/127.0.0.1/{} && cat <&3"


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    try:
        jail_of(request.param, Walls())
    except CannotJail as reason:
        pytest.skip(f"no {request.param} here: {reason}")
    return str(request.param)


class Session:
    """A place with watched connections, and what commands did there."""

    def __init__(self, kind: str, folder: Path, network: Network | None) -> None:
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        walls = Walls(readable=READABLE, closed=(str(folder / "home"),), person=str(folder))
        env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        records = folder / "home" / "jailed"
        self.place = LocalPlace(folder=records, env=env, jail=partial(jail_of, kind, walls), network=network)
        self.count = 0

    async def start(self, text: str, group: str = "g", *, background: bool = False) -> Running:
        self.count += 1
        return await self.place.start(
            f"{group}/{self.count}", Command(text=text, folder=str(self.work), background=background)
        )

    async def __call__(self, text: str, group: str = "g") -> tuple[Ended, str]:
        running = await self.start(text, group)
        ended = await running.wait()
        return ended, (await running.read(0, 1 << 16)).decode(errors="replace")

    async def python(self, text: str) -> tuple[Ended, str]:
        (self.work / "program.py").write_text(text)
        return await self(f"exec {sys.executable} -IS program.py")

    async def serve(self, text: str = SERVES) -> tuple[Running, int]:
        (self.work / "server.py").write_text(text)
        running = await self.start(f"exec {sys.executable} -IS server.py", background=True)
        while not (said := await running.read(0, 100)).endswith(b"\n"):
            assert await running.poll() is None, said
            await asyncio.sleep(0.01)
        return running, int(said)


@pytest.fixture
async def session(kind: str, tmp_path: Path) -> AsyncIterator[Session]:
    made = Session(kind, tmp_path, Network())
    yield made
    await made.place.close()


async def test_a_connection_to_elsewhere_is_refused_and_named(session: Session) -> None:
    ended, output = await session("exec 3<>/dev/tcp/192.0.2.1/22")

    assert "Permission denied" in output
    assert (ended.reached, ended.stopped) == ((), ("a connection to 192.0.2.1:22",))


async def test_a_command_that_connects_nowhere_reached_nobody(session: Session) -> None:
    ended, _ = await session("true")

    assert (ended.code, ended.reached, ended.stopped) == (0, (), ())


async def test_a_server_is_reached_by_its_session_and_the_person_and_not_by_another_session(session: Session) -> None:
    server, port = await session.serve()

    ours, output = await session(ASKS.format(port))
    others, refused = await session(ASKS.format(port), "other")
    with socket.create_connection(("127.0.0.1", port)) as person:
        heard = person.recv(10)
    await server.kill()

    assert (ours.code, output, ours.reached) == (0, "served", ())
    assert "Permission denied" in refused
    assert others.stopped == (f"a connection to 127.0.0.1:{port}",)
    assert heard == b"served"


async def test_a_service_of_this_machine_is_refused_also_under_an_address_where_the_session_listens(
    session: Session,
) -> None:
    text = """
import socket
mine = socket.create_server(("127.0.0.2", {0}))
for family, host in ((2, "127.0.0.1"), (2, "0.0.0.0"), (10, "::ffff:127.0.0.1"), (2, "127.0.0.2")):
    try:
        socket.socket(family).connect((host, {0}))
        print("connected", host)
    except OSError as error:
        print(error.errno)
"""
    with listening() as (port, reached):
        _, output = await session.python(text.format(port))

    assert output.split() == ["13", "13", "13", "connected", "127.0.0.2"]
    assert reached == []


async def test_an_allowed_address_is_reached_and_noted(kind: str, tmp_path: Path) -> None:
    with listening() as (port, reached):
        session = Session(kind, tmp_path, Network(direct=(f"127.0.0.1:{port}",)))
        ended, output = await session(
            f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /x HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
        )
        await session.place.close()

    assert "204" in output
    assert (reached, ended.reached, ended.stopped) == (["/x"], (f"127.0.0.1:{port}",), ())


async def test_what_connects_by_another_way_is_refused(session: Session) -> None:
    text = """
import ctypes, errno, platform, socket
ways = {
    "datagram": lambda: socket.socket(2, 2), "datagram6": lambda: socket.socket(10, 2 | 0o4000),
    "raw": lambda: socket.socket(2, 3, 1), "mptcp": lambda: socket.socket(2, 1, 262),
    "sctp": lambda: socket.socket(2, 1, 132),
    "packet": lambda: socket.socket(17, 3), "vsock": lambda: socket.socket(40, 1), "alg": lambda: socket.socket(38, 5),
    "netlink": lambda: socket.socket(16, 3, 4), "unix datagram": lambda: socket.socket(1, 2),
    "fast open": lambda: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", PORT)),
    "fast open by message": lambda: socket.socket().sendmsg([b"x"], [], 0x20000000, ("127.0.0.1", PORT)),
    "abstract": lambda: socket.socket(1).connect("\\0abstract"),
}
for name, way in ways.items():
    try:
        way()
        print("open:", name)
    except OSError as error:
        pass
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(425, 8, ctypes.create_string_buffer(120)) >= 0:
    print("open: io_uring")
if platform.machine() == "x86_64" and libc.syscall(0x40000000 + 41, 2, 1, 0) >= 0:
    print("open: x32")
socket.socket(16, 3, 0), socket.socketpair(), socket.socket(1, 5)
print("done")
"""
    with listening() as (port, reached):
        ended, output = await session.python(text.replace("PORT", str(port)))

    assert (output, reached) == ("done\n", [])
    assert "a datagram, as for the look-up of a name" in ended.stopped


async def test_an_address_or_socket_exchanged_meanwhile_leads_nowhere_else(session: Session) -> None:
    """A process flips the address that is connected to; then a thread flips the socket under its number."""
    text = """
import ctypes, mmap, os, socket, struct, threading
own = socket.create_server(("127.0.0.1", 0), backlog=1000)
libc = ctypes.CDLL(None, use_errno=True)
def address(port): return struct.pack("=H", 2) + struct.pack("!H4s8x", port, bytes([127, 0, 0, 1]))
good, bad = address(own.getsockname()[1]), address(PORT)
shared = mmap.mmap(-1, 4096)
memory = ctypes.addressof(ctypes.c_char.from_buffer(shared))
if (child := os.fork()) == 0:
    while True:
        shared[:16] = bad
        shared[:16] = good
counts = {}
for _ in range(300):
    made = socket.socket()
    libc.connect(made.fileno(), ctypes.c_void_p(memory), 16)
    number = ctypes.get_errno()
    try:
        assert made.getpeername()[1] != PORT, "connected"
        counts["own"] = 1
    except OSError:
        counts["none"] = 1
    made.close()
os.kill(child, 9)
spare, over = socket.socket(), False
number = os.dup(spare.fileno())
def flip():
    while not over:
        os.dup2(spare.fileno(), number)
threading.Thread(target=flip, daemon=True).start()
for _ in range(20):
    made = socket.socket()
    os.dup2(made.fileno(), number)
    libc.connect(number, bad, 16)
    for each in (made, spare):
        try:
            each.getpeername()
            print("connected")
        except OSError:
            pass
over = True
print(*sorted(counts))
"""
    with socket.create_server(("127.0.0.1", 0)) as victim:
        victim.setblocking(False)
        _, output = await session.python(text.replace("PORT", str(victim.getsockname()[1])))
        with pytest.raises(BlockingIOError):
            victim.accept()

    assert output == "none own\n"


async def test_sockets_behave_as_ever(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that block, those that do not, those that are connected already, local ones, dead ends."""
    text = """
import asyncio, errno, os, select, socket
async def talk():
    async def serve(reader, writer):
        writer.write(await reader.readexactly(3))
        writer.close()
    server = await asyncio.start_server(serve, "localhost", 0)
    for place in [each.getsockname() for each in server.sockets]:
        reader, writer = await asyncio.open_connection(*place[:2])
        writer.write(b"abc")
        assert await reader.read() == b"abc"
        writer.close()
asyncio.run(talk())
server = socket.create_server(("127.0.0.1", 0))
client = socket.socket()
client.setblocking(False)
assert client.connect_ex(server.getsockname()) == errno.EINPROGRESS
assert select.select([], [client], [], 5)[1] == [client]
assert client.connect_ex(server.getsockname()) in (0, errno.EISCONN)
blocking = socket.create_connection(server.getsockname())
assert os.get_blocking(blocking.fileno())
assert blocking.connect_ex(server.getsockname()) == errno.EISCONN
closed = server.getsockname()
server.close()
assert socket.socket().connect_ex(closed) == errno.ECONNREFUSED
local = socket.socket(1)
local.bind("a.sock")
local.listen()
os.symlink("a.sock", "link.sock")
for name in ("a.sock", os.path.abspath("a.sock"), "link.sock"):
    socket.socket(1).connect(name)
assert socket.socket(1).connect_ex("none.sock") == errno.ENOENT
assert socket.socket(1).connect_ex("OTHER") == errno.EACCES
print("done")
"""
    other = session.work / "other.sock"
    with socket.socket(socket.AF_UNIX) as foreign:
        monkeypatch.chdir(session.work)  # its name may be too long otherwise
        foreign.bind("other.sock")
        foreign.listen()
        ended, output = await session.python(text.replace("OTHER", "other.sock"))

    assert output == "done\n"
    assert ended.stopped == (f"a connection to {other}",)


async def test_calls_that_mean_nothing_fail_and_the_next_is_served(session: Session) -> None:
    text = r"""
import ctypes, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
made = socket.socket()
file = os.open("program.py", os.O_RDONLY)
for number in (made.fileno(), -1, 999, file, socket.socket(1).fileno(), socket.socket(16, 3, 0).fileno()):
    for where in (0, 1, 2**63, 2**64 - 8):
        for length in (0, 1, 2, 16, 2**31, -1):
            assert libc.connect(number, ctypes.c_void_p(where), length) == -1 or number == -1, (number, where, length)
    for content in (b"", b"\2", b"\2\0", b"\1\0", b"\1\0\xff\xfe/\n", b"\xff\xff" * 8, b"\n\0\0\1", b"\2\0\0\1" * 20):
        assert libc.connect(number, content, len(content)) == -1, (number, content)
    libc.listen(number, -1)
print("done")
"""
    _, output = await session.python(text)
    after, _ = await session("exec 3<>/dev/tcp/127.0.0.1/1")

    assert output == "done\n"
    assert after.code == 1


async def test_many_connections_of_one_command_do_not_keep_another_waiting(session: Session) -> None:
    flood = """
import os, socket, threading
full = socket.socket()
full.bind(("127.0.0.1", 0))
full.listen(0)
def stuck():
    while True:
        socket.socket().connect_ex(full.getsockname())
for _ in range(300):
    threading.Thread(target=stuck, daemon=True).start()
print(full.getsockname()[1], flush=True)
threading.Event().wait()
"""
    flooding, _ = await session.serve(flood)
    server, port = await session.serve()
    async with asyncio.timeout(10):
        ended, output = await session(ASKS.format(port))
        await flooding.kill()
        again, _ = await session(ASKS.format(port))
    await server.kill()

    assert (ended.code, output, again.code) == (0, "served", 0)


async def test_a_talk_with_a_command_that_reached_somebody_reaches_them_too_also_for_a_later_program(
    kind: str, tmp_path: Path
) -> None:
    with listening() as (port, _):
        session = Session(kind, tmp_path, Network(direct=(f"127.0.0.1:{port}",)))
        relays = SERVES.replace("server =", f"socket.create_connection(('127.0.0.1', {port})); server =")
        server, own = await session.serve(relays)
        ended, _ = await session(ASKS.format(own))
        await server.kill()
        await session.place.close()
    later = Session(kind, tmp_path, Network())
    attached = await later.place.attach(server.exec_id)

    assert attached is not None
    assert ended.reached == (await attached.wait()).reached == (f"127.0.0.1:{port}",)


async def test_a_command_goes_on_without_connections_after_its_program_was_killed(kind: str, tmp_path: Path) -> None:
    connects = """
import errno, socket, time
server = socket.create_server(("127.0.0.1", 0))
while True:
    number = socket.socket().connect_ex(server.getsockname())
    open("seen", "a").write(f"{number}\\n")
    if number:
        break
"""
    starts = f"""
import asyncio, sys
from pathlib import Path
from tests.sandbox.test_network import Network, Session
async def main():
    session = Session({kind!r}, Path({str(tmp_path)!r}), Network())
    (session.work / "p.py").write_text({connects!r})
    running = await session.start(f"exec {{sys.executable}} -IS p.py", background=True)
    await running.wait()
asyncio.run(main())
"""
    seen = tmp_path / "work" / "seen"
    paths = os.pathsep.join(sys.path)
    with subprocess.Popen([sys.executable, "-c", starts], env={**os.environ, "PYTHONPATH": paths}) as program:  # noqa: ASYNC220 - it is killed at once
        async with asyncio.timeout(20):
            while not seen.exists():
                await asyncio.sleep(0.01)
            program.send_signal(signal.SIGKILL)
            while not seen.read_text().endswith("38\n"):
                await asyncio.sleep(0.01)


async def test_nobody_watches_where_there_is_no_network_to_watch(kind: str, tmp_path: Path) -> None:
    ended, _ = await Session(kind, tmp_path, None)("true")

    assert ended.reached is None
