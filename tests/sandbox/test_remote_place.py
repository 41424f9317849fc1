"""A way that breaks is taken again, a place that is another one is told of, and an answer is read for what it says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hermes_agent.sandbox.place import AlreadyStarted, Command, PlaceFailed
from hermes_agent.sandbox.remote_place import RemotePlace, ask
from hermes_agent.sandbox.transport import Unreachable


class Scripted:
    """A `Reach` whose answers are given; None is a way that breaks."""

    records = "/records"
    environment: dict[str, str] = {}  # noqa: RUF012 - never changed

    def __init__(self, *answers: bytes | None, lost: str = "") -> None:
        self.answers = list(answers)
        self.lost = lost
        self.asked: list[str] = []

    async def call(self, arguments: Sequence[str], data: bytes = b"") -> Heard:
        self.asked.append(arguments[0])
        return Heard(self.answers.pop(0))

    async def restore(self) -> str:
        return self.lost

    async def to(self, group: str, folder: str = "") -> Scripted | None:
        return self if folder or group == "g" else None

    async def near(self, path: str, folder: str) -> Scripted:
        return self

    async def close(self) -> None:
        pass


class Heard:
    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer

    async def line(self) -> str:
        if self.answer is None:
            raise Unreachable("The line is dead.")
        line, _, self.answer = self.answer.partition(b"\n")
        return line.decode()

    async def rest(self) -> bytes:
        return self.answer or b""

    async def close(self) -> None:
        pass


async def test_what_broke_on_the_way_is_asked_again():
    reach = Scripted(None, b"ok 12\n")

    assert await ask(reach, "size", "g/a") == ("ok", "12", b"")
    assert reach.asked == ["size", "size"]


async def test_a_way_that_stays_broken_is_given_up():
    with pytest.raises(Unreachable, match="dead"):
        await ask(Scripted(None, None, None), "size", "g/a")


async def test_a_place_that_is_another_one_is_told_and_nothing_runs():
    reach = Scripted(None, lost="It was made anew.")

    with pytest.raises(PlaceFailed, match="made anew"):
        await RemotePlace("far", reach).start("g/a", Command(text="true", folder="/"))
    assert reach.asked == ["start"]


async def test_what_the_keeper_refuses_is_a_sentence():
    with pytest.raises(PlaceFailed, match="is larger"):
        await ask(Scripted(b"fail /a is larger than 3 bytes.\n"), "get", "/a", "3")


async def test_a_start_that_was_heard_but_not_answered_is_attached_to():
    place = RemotePlace("far", Scripted(None, b"exists\n", b'found\n/work\n{"text":"x","folder":"/work"}\n'))

    with pytest.raises(AlreadyStarted):
        await place.start("g/a", Command(text="x", folder="/work"))
    running = await place.attach("g/a")

    assert running is not None
    assert (running.cwd, running.command.text) == ("/work", "x")


async def test_an_end_that_is_not_heard_to_the_end_is_asked_for():
    place = RemotePlace("far", Scripted(b"begun /work\n", b"ended 3 1.5 2.25 0\n/usr\nhi\n"))
    running = await place.start("g/a", Command(text="x", folder="/work", shell="g"))
    running.hearing = None

    ended = await running.wait()

    assert (ended.code, ended.seconds, ended.children) == (3, 0.75, False)
    assert await running.read(0, 10) == b"hi\n"
    assert await place.directory("g") == "/usr"


async def test_a_group_that_never_began_has_nothing():
    place = RemotePlace("far", Scripted())

    assert await place.attach("nobody/a") is None
    assert await place.list("nobody") == ()
    assert await place.directory("nobody") == ""


async def test_what_is_listed_is_in_the_order_in_which_it_began():
    place = RemotePlace("far", Scripted(b"ok\n90 7 g/late\n9 8 g/early\n90 6 g/middle\n"))

    assert await place.list("g") == ("g/early", "g/middle", "g/late")


async def test_a_command_that_is_lent_a_file_of_this_machine_is_refused():
    place = RemotePlace("far", reach := Scripted())

    with pytest.raises(PlaceFailed, match="lent a secret"):
        await place.start("g/a", Command(text="cat /x", folder="/work", lent=("/x",)))
    assert reach.asked == []
