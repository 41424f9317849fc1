"""Another machine: a broken connection is taken up again, and commands never notice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.ssh import Machine, build
from hermes_agent.sandbox.jail import Walls
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.sandbox.reached import ReachedPlace
from hermes_agent.sandbox.settings import SshSettings
from tests.sandbox.sshd import NoServer, server


@pytest.fixture
def settings() -> SshSettings:
    try:
        return replace(server(), sync=False)  # this machine plays the other one, and has the files
    except NoServer as reason:
        pytest.skip(f"no ssh server here: {reason}")


def place_of(settings: SshSettings, folder: Path) -> ReachedPlace:
    place = build(folder, settings, Walls(), {}, {"PAGER": "cat"}, home=str(folder / "account"))
    assert isinstance(place, ReachedPlace)
    return place


async def test_a_command_survives_a_connection_that_breaks_and_is_heard_to_its_end(
    settings: SshSettings, tmp_path: Path
) -> None:
    place = place_of(settings, tmp_path)
    text = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 6"
    running = await place.start("g/a", Command(text=text, folder=str(tmp_path)))

    (await place._ways.to("g"))._connection.abort()
    await place.put(str(tmp_path / "go"), b"")

    assert (await running.wait()).code == 6
    assert await running.read(0, 100) == b"one\ntwo\n"
    await place.close()


async def test_a_folder_that_is_not_there_is_made_and_a_new_shell_is_told_what_it_should_know(
    settings: SshSettings, tmp_path: Path
) -> None:
    place = place_of(settings, tmp_path)
    folder = str(tmp_path / "new folder")

    running = await place.start("g/a", Command(text="pwd; echo $PAGER", folder=folder))
    await running.wait()

    assert await running.read(0, 1000) == f"{folder}\ncat\n".encode()
    await place.close()


async def test_a_key_that_is_refused_and_a_machine_that_is_unknown_are_sentences(
    settings: SshSettings, tmp_path: Path
) -> None:
    (tmp_path / "nobody").touch()
    wrong = {
        "refused the key": replace(settings, user="nobody-of-this-name"),
        "is not known": replace(settings, known_hosts=str(tmp_path / "nobody")),
    }
    for said, changed in wrong.items():
        with pytest.raises(PlaceFailed, match=said):
            await place_of(changed, tmp_path).start("g/a", Command(text="true", folder="/"))


def test_without_a_machine_there_is_no_place(tmp_path: Path) -> None:
    with pytest.raises(PlaceFailed, match=r"terminal\.ssh\.host"):
        place_of(SshSettings(), tmp_path)


class Quick(Machine):
    """A machine that has answered and closed before its question was sent whole; a real one does so by chance."""

    async def connected(self) -> Quick:
        return self

    async def create_process(self, line: str, encoding: None) -> Quick:
        return self

    stdin = stdout = property(lambda self: self)

    def write(self, data: bytes) -> None:
        raise BrokenPipeError("Channel not open for sending")

    async def readline(self) -> bytes:
        return b"ok 3\n"


async def test_an_answer_that_came_before_its_question_was_sent_whole_is_heard() -> None:
    machine = Quick(SshSettings(host="build.example"), {}, "")

    assert await (await machine.call(["size"], b"x")).line() == "ok 3"
