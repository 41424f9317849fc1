"""Another machine: a broken connection is taken up again, and commands never notice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.ssh import Machine, build
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.sandbox.remote_place import RemotePlace
from hermes_agent.sandbox.settings import SshSettings
from hermes_agent.sandbox.walls import Walls
from tests.sandbox.sshd import NoServer, server

OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPlMaIzaCzohuigXoTLFUsZ3nB7MBJsQVQBFNhNbEE+e"


@pytest.fixture
def settings() -> SshSettings:
    try:
        return replace(server(), sync=False)  # this machine plays the other one, and has the files
    except NoServer as reason:
        pytest.skip(f"no ssh server here: {reason}")


def place_of(settings: SshSettings, folder: Path) -> RemotePlace:
    place = build(folder, settings, Walls(), {}, {"PAGER": "cat"}, home=str(folder / "account"))
    assert isinstance(place, RemotePlace)
    return place


async def test_a_command_survives_a_connection_that_breaks_and_is_heard_to_its_end(
    settings: SshSettings, tmp_path: Path
) -> None:
    place = place_of(settings, tmp_path)
    text = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 6"
    running = await place.start("g/a", Command(text=text, folder=str(tmp_path)))

    (await place._ways.to("g"))._connection.abort()
    (tmp_path / "go").touch()

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


async def test_a_host_key_that_changed_is_told_from_one_that_is_not_known(
    settings: SshSettings, tmp_path: Path
) -> None:
    here, unknown, other = f"[127.0.0.1]:{settings.port}", tmp_path / "unknown", tmp_path / "other"
    unknown.touch()
    other.write_text(f"{here} {OTHER_KEY}\n")
    by_hand = f"ssh -p {settings.port} -i {settings.key} -o UserKnownHostsFile={{}} {settings.user}@127.0.0.1"
    told = {
        unknown: (
            f"127.0.0.1 is not known: {unknown} has no key of {here}.",
            f"Connect once by hand: {by_hand.format(unknown)}",
        ),
        other: (
            f"The key of 127.0.0.1 has CHANGED: it is not the one that {other} has for {here}. Somebody may have put "
            "another machine in its place.",
            f"Find out why before anything else. If the machine was set up anew, forget the old key (ssh-keygen "
            f"-f {other} -R '{here}') and connect once by hand: {by_hand.format(other)}",
        ),
    }
    for file, (sentence, hint) in told.items():
        with pytest.raises(PlaceFailed) as caught:
            await place_of(replace(settings, known_hosts=str(file)), tmp_path).start(
                "g/a", Command(text="true", folder="/")
            )

        assert (str(caught.value), caught.value.hint) == (sentence, hint)


def test_a_machine_with_nothing_set_is_named_as_ssh_is_told() -> None:
    machine = Machine(SshSettings(host="box.test"), {}, "")

    assert machine.by_hand == "ssh box.test"
    assert machine.names == ("box.test", str(Path("~/.ssh/known_hosts").expanduser()))


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
