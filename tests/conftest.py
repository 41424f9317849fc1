"""What holds for every test: no network but loopback, a scrubbed environment, no home but a temporary one."""

import importlib
import ipaddress
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import coverage
import hypothesis
import pytest
import wall
from xdist.workermanage import NodeManager

import hermes_agent.core.dataclass

hermes_agent.core.dataclass.ENFORCED = True

SECRET = re.compile(r"^(HERMES|AWS|GOOGLE)_|_API_KEY$|_TOKEN$|_SECRET$")

# A busy machine may be slow: how long one example takes is no finding.
for profile, examples in {"hermes": 30, "full": 150}.items():
    hypothesis.settings.register_profile(profile, deadline=None, print_blob=True, max_examples=examples)
hypothesis.settings.load_profile("hermes")


EXIT_SECONDS = 120
GROUPS = "hermes-wall"
TO_CHILDREN = "COVERAGE_PROCESS_CONFIG"
GROUND = tuple(f"tests/{folder}/" for folder in ("core", "agent", "store", "runs", "work"))
"""The tests that reach all that every check measures. It costs a third of a test's time: the others run without."""
MEASURED = coverage.Coverage.current() if "COVERAGE_RCFILE" in os.environ else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """On a busy machine a worker may take longer than ten seconds to write down what it covered."""
    NodeManager.EXIT_TIMEOUT = EXIT_SECONDS
    measure(False)  # This process runs no test.


@pytest.hookimpl(trylast=True)  # after they were put into their random order
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with slow tests come first in each worker's share, so that none is left alone with one at the end."""
    workers = getattr(config, "workerinput", {}).get("workercount", 0)
    files = [list(file) for _, file in groupby(items, key=lambda item: item.path)]
    slow = [file for file in files if any(item.get_closest_marker("slow") for item in file)]
    quick = [file for file in files if file not in slow]
    order: list[pytest.Item] = []
    for worker in range(workers):
        first, end = slow[worker::workers], len(items) * (worker + 1) // workers
        while first or (quick and len(order) < end):
            for some in filter(None, (first, quick)):
                order += some.pop()
    items[:] = order or items


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    measure(item.nodeid.startswith(GROUND))
    return (yield)


def measure(wanted: bool) -> None:
    """Go on with the coverage of what is run in this process, or pause it."""
    if MEASURED and wanted != (coverage.Coverage.current() is MEASURED):
        (MEASURED.start if wanted else MEASURED.stop)()
        if wanted:
            os.environ.pop(TO_CHILDREN, None)  # It was put there again.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="every example, and each crash loop for minutes, not seconds")
    parser.addoption("--pool", type=int, metavar="N", help="the default pool of every event loop has N threads")
    parser.addoption(
        "--lock-seconds", type=float, metavar="S", help="whoever gets a lock file waits S s before the work"
    )


def pytest_configure(config: pytest.Config) -> None:
    """How much is tried; scarcity, here and in the children that `tests.children` and `tests.cli.shell` start."""
    if config.getoption("--full"):
        hypothesis.settings.load_profile("full")
    given = {"TESTED_POOL": config.getoption("--pool"), "TESTED_LOCK_SECONDS": config.getoption("--lock-seconds")}
    scarce = {name: str(value) for name, value in given.items() if value is not None}
    if scarce:
        os.environ.update(scarce)
        importlib.import_module("tests.narrow.sitecustomize")


def pytest_unconfigure() -> None:
    """Remove the control groups of homes that tests left: of this process, and of killed ones."""
    for group in Path("/sys/fs/cgroup").glob(f"*/{GROUPS}-????????????????-*"):
        signs = [sign for sign in group.glob("*.????????") if sign.is_dir()]
        gone = [each for each in signs if each.stem == str(os.getpid()) or not Path("/proc", each.stem).exists()]
        for each in (*gone, group):
            with suppress(OSError):  # others are at work in it
                each.rmdir()


class NetworkRefused(Exception):
    """A test tried to leave this machine."""


def is_near(host: object) -> bool:
    """Whether `host` is this machine: a loopback address, its name, or the address that means "any of mine"."""
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        address = ipaddress.ip_address(str(host).split("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    match event, arguments:
        case ("socket.connect" | "socket.sendto" | "socket.sendmsg", (socket.socket() as opened, (host, *_), *_)):
            if opened.family in (socket.AF_INET, socket.AF_INET6) and not is_near(host):
                raise NetworkRefused(f"{event} to {host}: a test may only talk to loopback")
        case "socket.getaddrinfo" | "socket.gethostbyname", (host, *_) if not is_near(host):
            raise NetworkRefused(f"{event} of {host}: a test may only talk to loopback")


# What every check covers it covers in the tests' own processes, not in those that they start.
hands_out = any(word.startswith("--numprocesses") for word in sys.argv)
if "COVERAGE_RCFILE" in os.environ and ("PYTEST_XDIST_WORKER" in os.environ or not hands_out):
    os.environ.pop(TO_CHILDREN, None)

sys.addaudithook(refuse_network)
wall.listen()


@pytest.fixture(autouse=True, scope="session")
def _scrubbed_environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home:
        for name in os.environ:
            if SECRET.search(name):
                patch.delenv(name)
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "EDITOR", "NO_COLOR"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", home)
        patch.setenv("TZ", "UTC")
        yield


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether everything is tried that may go wrong, for minutes, or some of it."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty HERMES_HOME, named in the environment too."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(folder))
    return folder
