"""A chosen place is made when it is first used, once."""

from hermes_agent.sandbox.chosen import ChosenPlace
from hermes_agent.sandbox.place import Command
from hermes_agent.testing.place import FakePlace


async def test_nothing_is_made_before_the_first_use():
    made: list[FakePlace] = []

    def make() -> FakePlace:
        made.append(FakePlace())
        return made[-1]

    place = ChosenPlace("fake", make)
    assert (place.name, made) == ("fake", [])

    running = await place.start("s/1", Command(text="true", folder="/"))
    await running.wait()
    await place.put("/a", b"x")

    assert await place.get("/a") == b"x"
    assert (await place.attach("s/1")).exec_id == "s/1"
    assert await place.list("s") == ()
    assert await place.directory("s") == await made[0].directory("s")
    assert len(made) == 1
