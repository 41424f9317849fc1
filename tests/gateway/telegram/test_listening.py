"""Pictures that somebody sends together are one message."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from hermes_agent.gateway.channel import NotNow, Said
from hermes_agent.gateway.channels.telegram import CHANNEL
from tests.contracts.channels import needs
from tests.doubles.telegram import TOKEN, telegram
from tests.gateway.harness import eventually

MENTION = [{"type": "mention", "offset": 0, "length": 11}]


class Place:
    """A bot that is polled, and what it heard."""

    def __init__(self, double, folder) -> None:
        self.double = double
        self.needs = needs(folder, {"api_url": double.url}, TOKEN)
        self.channel = CHANNEL.make(self.needs)
        self.heard: list[Said] = []

    async def hear(self, heard) -> str:
        self.heard.append(heard)
        return ""

    @asynccontextmanager
    async def listening(self):
        task = asyncio.create_task(self.channel.listen(self.hear))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, NotNow):
                await task

    async def picture(self, id_: str, album: str = "77", chat: str = "-9", **more: object) -> None:
        await self.double.say(
            "", chat=chat, group=True, photo=[{"file_id": id_, "width": 9}], media_group_id=album, **more
        )

    def pictures(self) -> list[list[str]]:
        return [[media.reference for media in said.media] for said in self.heard]


@pytest.fixture
async def place(tmp_path):
    async with telegram() as double:
        made = Place(double, tmp_path)
        yield made
        await made.needs.http.close()


async def test_an_album_is_one_message_with_its_words_and_its_pictures(place):
    await place.picture("a", caption="@hermes_bot compare", caption_entities=MENTION)
    await place.picture("b")
    await place.double.say("me too", chat="-9", user="8", group=True)
    await place.picture("c")

    async with place.listening():
        await eventually(lambda: place.double.received() == 4)

    assert [(said.text, said.addressed, said.source_id) for said in place.heard] == [
        ("compare", True, "-9:1"),
        ("me too", False, "-9:3"),
    ]
    assert place.pictures() == [["a", "b", "c"], []]


async def test_what_of_an_album_is_still_on_its_way_is_waited_for(place):
    async with place.listening():
        await place.picture("a", caption="@hermes_bot compare", caption_entities=MENTION)
        await eventually(lambda: place.double.given_out == 1)
        await place.picture("b")
        await eventually(lambda: place.double.received() == 2)

    assert place.pictures() == [["a", "b"]]


async def test_pictures_that_come_without_end_hold_up_nobody(place):
    async def pictures() -> None:
        for number in range(100):
            before = place.double.given_out
            await place.picture(f"{number}", album=f"{number}")
            await eventually(lambda before=before: place.double.given_out > before)

    async with place.listening():
        trickle = asyncio.create_task(pictures())
        await eventually(lambda: place.double.given_out == 1)
        await place.double.say("/stop", chat="7", user="7")
        try:
            async with asyncio.timeout(4):  # Two seconds are promised; the rest is for a machine that has much to do.
                await eventually(lambda: any(said.text == "/stop" for said in place.heard))
        finally:
            trickle.cancel()


async def test_two_albums_are_two_messages(place):
    await place.picture("a", "1")
    await place.picture("b", "2")
    await place.picture("c", "1", chat="-8")

    async with place.listening():
        await eventually(lambda: place.double.received() == 3)

    assert sorted(place.pictures()) == [["a"], ["b"], ["c"]]
