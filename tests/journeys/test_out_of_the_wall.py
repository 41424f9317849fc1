"""What the wall stops goes out of it by one question: a push to where the person's keys lead, and docker's socket."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.app.places import walls
from hermes_agent.core.events import Asked, ToolEnded
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.tools.settings import TerminalSettings
from tests.app.place import Place, place

PUSH = Call("terminal", {"command": "git push origin main"})
OUT = Call("terminal", {"command": "git push origin main", "outside": True})
GIT = ["git", "-c", "user.name=Ann", "-c", "user.email=a@example.org"]


@pytest.fixture(params=["bubblewrap", "landlock"])
def jail(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    try:
        shown = walls(Home(root=tmp_path / "home", base=tmp_path / "home"), TerminalSettings(), os.environ)
        jail_of(request.param, shown)
    except CannotJail as reason:
        pytest.skip(f"no {request.param} here: {reason}")
    return f"terminal:\n  jail: {request.param}\n"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A repository that the wall does not show, where the workspace pushes to."""
    if shutil.which("git") is None:
        pytest.skip("no git here")
    work, made = tmp_path / "work", tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", made], check=True)
    subprocess.run(["git", "init", "-q", "-b", "main", work], check=True)
    subprocess.run(["git", "-C", work, "remote", "add", "origin", made], check=True)
    return made


def commit(work: Path) -> None:
    subprocess.run([*GIT, "-C", work, "commit", "-q", "--allow-empty", "-m", "one more"], check=True)


def pushed(remote: Path) -> int:
    counted = subprocess.run(
        ["git", "-C", remote, "rev-list", "--count", "--all"], capture_output=True, text=True, check=True
    )
    return int(counted.stdout)


async def results(here: Place) -> list[str]:
    return [str(entry.event.message.parts) for entry in await here.log() if isinstance(entry.event, ToolEnded)]


async def asked(here: Place) -> list[Asked]:
    return [entry.event for entry in await here.log() if isinstance(entry.event, Asked)]


async def test_the_first_push_asks_once_and_its_rule_is_listed_and_withdrawn(tmp_path: Path, jail: str, remote: Path):
    commit(tmp_path / "work")
    script = [PUSH, OUT, Say("Pushed."), PUSH, Say("Pushed again."), OUT, Say("Not pushed.")]
    async with place(tmp_path, script, more=jail) as here:
        after = await here.tell("Push it")
        question = (await here.until(Asked, after)).event
        assert pushed(remote) == 0
        assert "outside the wall" in question.text
        assert "git push origin *" in question.text
        await here.tell(here.inbound("rule", answers=question.question))
        await here.ended(after)
        assert pushed(remote) == 1, await results(here)

        commit(tmp_path / "work")
        await here.say("Push again")
        assert (pushed(remote), len(await asked(here))) == (2, 1), await results(here)

        listed = await here.text("/approvals list")
        assert "git push origin *" in listed
        await here.text(f"/approvals withdraw {listed.split()[0]}")
        commit(tmp_path / "work")
        after = await here.tell("Push again")
        question = (await here.until(Asked, after)).event
        await here.tell(here.inbound("deny", answers=question.question))
        await here.ended(after)
        assert (pushed(remote), len(await asked(here))) == (2, 2)


CLIENT = """#!{python} -IS
import socket
with socket.socket(socket.AF_UNIX) as it:
    it.connect({path!r})
    print(it.recv(100).decode())
"""


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A program of that name, and the socket of its engine in the person's runtime folder."""
    folder = tmp_path / "run"
    folder.mkdir()
    engine = socket.socket(socket.AF_UNIX)
    engine.bind(str(folder / "docker.sock"))
    engine.listen()

    def serve() -> None:
        while True:
            try:
                with engine.accept()[0] as one:
                    one.sendall(b"an engine answers")
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    programs = tmp_path / "work" / "bin"
    programs.mkdir(parents=True)
    (programs / "docker").write_text(CLIENT.format(python=sys.executable, path=str(folder / "docker.sock")))
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    yield
    engine.shutdown(socket.SHUT_RDWR)
    engine.close()


@pytest.mark.usefixtures("docker")
async def test_docker_is_reached_by_question_and_by_nothing_else(tmp_path: Path, jail: str):
    inside, outside = ({"command": "docker ps"} | more for more in ({}, {"outside": True}))
    script = [Call("terminal", inside), Call("terminal", outside), Say("Done.")]
    async with place(tmp_path, script, more=jail) as here:
        after = await here.tell("Look what runs")
        question = (await here.until(Asked, after)).event
        assert "an engine answers" not in str(await results(here))
        await here.tell(here.inbound("once", answers=question.question))
        await here.ended(after)

        assert len(await asked(here)) == 1
        assert "an engine answers" in (await results(here))[-1]
