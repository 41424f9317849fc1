"""What a gateway's process is told, and what it tells outside; see also `tests/cli/commands/test_gateway.py`."""

import asyncio
import os
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options, open_system
from hermes_agent.cli.gateway.serving import SideServers, Sign, StopRequests, Supervisor, serve_again
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.state import Phase, read_state
from hermes_agent.host.loops import ends_within
from hermes_agent.host.paths import Home
from hermes_agent.host.process import run
from hermes_agent.host.tasks import spawn
from tests.app.place import settle_home


def test_the_last_word_counts_but_an_end_is_not_taken_back():
    told = StopRequests(over=asyncio.Event())
    told.restart()
    told.restart()
    assert told.again
    told.end()
    told.restart()
    assert told.over.is_set()
    assert not told.again


def test_who_is_told_to_end_a_second_time_waits_for_nothing_and_takes_no_restart():
    hurried: list[int] = []
    told = StopRequests(over=asyncio.Event(), hurry=lambda: hurried.append(1))
    told.end()
    assert told.over.is_set()
    assert hurried == []
    told.again = True
    told.end()
    ends_within(0)
    assert hurried == [1]
    assert not told.again


def test_a_home_that_cannot_be_written_ends_no_gateway(tmp_path: Path):
    (tmp_path / "run").mkdir()
    home = Home(root=tmp_path, base=tmp_path)
    sign = Sign(home=home, started=1.0, supervisor=Supervisor({}))
    sign.now(Phase.READY, "READY=1")
    state = read_state(home)
    assert state is not None
    assert state.phase is Phase.READY
    (tmp_path / "run" / f"gateway-{state.pid}.json").unlink()
    (tmp_path / "run" / f"gateway-{state.pid}.json").mkdir()

    sign.write()


def test_how_a_channel_is_now_is_told_once_and_again_when_it_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    sign = Sign(home=Home(root=tmp_path, base=tmp_path), started=1.0, supervisor=Supervisor({}))
    for state in [
        ("starting", ""),
        ("listening", ""),
        ("listening", ""),
        ("waiting", "No network."),
        ("listening", ""),
    ]:
        sign.show({"telegram": state})

    told = capsys.readouterr().out.splitlines()
    assert told == ["telegram: listening", "telegram: waiting: No network.", "telegram: listening"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_channel_goes_on_where_nobody_can_be_told_how_it_is(tmp_path: Path):
    sign = Sign(home=Home(root=tmp_path, base=tmp_path), started=1.0, supervisor=Supervisor({}))
    with suppress(OSError), Path("/dev/full").open("w") as full, redirect_stdout(full):
        sign.show({"telegram": ("listening", "")})
        sign.show({"telegram": ("waiting", "No network.")})

    assert sign.shown == {"telegram": "telegram: waiting: No network."}


BEGINS_AGAIN = """
import os, sys
import pytest

from hermes_agent.cli.gateway.serving import serve_again
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
serve_again(Surface(invocation=Invocation(), variables=os.environ), sys.argv[1])
"""


async def test_what_it_is_asked_while_it_begins_again_does_not_end_it(tmp_path: Path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nkill -USR1 $$\nkill -USR2 $$\necho there\n")
    program.chmod(0o700)

    done = await run([sys.executable, "-c", BEGINS_AGAIN, str(program)], env=os.environ)

    assert (done.code, done.out) == (0, b"there\n")


def test_where_the_system_does_not_let_it_begin_again_it_has_ended(tmp_path: Path):
    assert not serve_again(
        Surface(invocation=Invocation(), variables={"HERMES_HOME": str(tmp_path)}), "/nowhere/python"
    )


API = "api: {enabled: true, port: 0}\n"


async def test_nothing_listens_before_it_is_wanted(tmp_path: Path):
    async with open_system(settle_home(tmp_path, "http://127.0.0.1:9"), Options()) as runtime:
        beside = SideServers(runtime)
        beside.check(runtime.settings, runtime.secrets.get)
        await beside.follow(runtime.settings)
        assert beside.url == ""
        await beside.close()


async def test_the_api_listens_once_it_has_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    home = settle_home(tmp_path, "http://127.0.0.1:9", API)
    async with open_system(home, Options()) as runtime:
        beside = SideServers(runtime)
        with pytest.raises(ConfigError, match="API_SERVER_KEY"):
            beside.check(runtime.settings, runtime.secrets.get)
        runtime.secrets.set("API_SERVER_KEY", "0123456789abcdef")
        await beside.follow(runtime.settings)

        assert beside.addresses == (f"The API answers at {beside.url}/v1",)
        assert capsys.readouterr().out == f"{beside.addresses[0]}\n"
        sign = Sign(home=home, started=1.0, supervisor=Supervisor({}), beside=beside)
        sign.write()
        assert (state := read_state(home)) is not None
        assert state.beside == beside.addresses

        await beside.close()
        assert beside.addresses == ()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        yield listening


def told(listening: socket.socket) -> list[str]:
    lines: list[str] = []
    while select.select([listening], [], [], 0)[0]:
        lines.append(listening.recv(4096).decode())
    return lines


def test_it_is_told_what_is_said(systemd: socket.socket):
    Supervisor({"NOTIFY_SOCKET": systemd.getsockname()}).notify("READY=1", "STATUS=At work.")

    assert told(systemd) == ["READY=1\nSTATUS=At work."]


def test_an_abstract_name_is_one():
    name = f"hermes-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        Supervisor({"NOTIFY_SOCKET": f"@{name}"}).notify("READY=1")

        assert told(listening) == ["READY=1"]


def test_where_nobody_listens_nothing_breaks(tmp_path: Path):
    Supervisor({}).notify("READY=1")
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "nowhere")}).notify("READY=1")


async def well() -> bool:
    return True


async def test_who_does_not_get_on_gives_no_sign_until_it_does(systemd: socket.socket):
    ill = asyncio.Event()

    async def gets_on() -> bool:
        return not ill.is_set()

    supervisor = Supervisor({"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "60000"})
    signs = spawn(supervisor.reassure(gets_on), name="signs")
    await asyncio.sleep(0.1)
    ill.set()
    before = told(systemd)
    await asyncio.sleep(0.1)
    meanwhile = told(systemd)
    ill.clear()
    await asyncio.sleep(0.1)
    after = told(systemd)
    signs.cancel()

    assert (bool(before), meanwhile, bool(after)) == (True, [], True)


async def test_a_loop_that_turns_gives_signs_of_life_and_one_that_hangs_none(systemd: socket.socket):
    supervisor = Supervisor({"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "60000"})
    signs = spawn(supervisor.reassure(well), name="signs")
    await asyncio.sleep(0.2)
    turning = told(systemd)
    select.select([], [], [], 0.3)  # The loop hangs: longer than systemd waits.
    hanging = told(systemd)
    signs.cancel()

    assert set(turning) == {"WATCHDOG=1"}
    assert len(turning) >= 3
    assert hanging == []


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "soon"}, 0.0),
        ({}, 0.0),
    ],
)
async def test_it_is_watched_where_systemd_says_so(variables: dict[str, str], seconds: float):
    supervisor = Supervisor({"NOTIFY_SOCKET": "/nowhere", **variables})

    assert supervisor.seconds == seconds
    if not seconds:
        await supervisor.reassure(well)  # It ends at once.
