"""Updates that Telegram brings: taken in before it is told, from Telegram alone."""

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import Heard, NotNow, Said, TokenRefused
from hermes_agent.gateway.channels.telegram import CHANNEL
from hermes_agent.gateway.telegram.listening import MOST_WAITING, WEBHOOK_SET, Entrance, acknowledge, secret_of
from hermes_agent.host.inbound.listener import listen
from hermes_agent.host.inbound.message import Body, Handler, Request, Response
from tests.contracts.channels import needs
from tests.doubles.telegram import TOKEN, telegram
from tests.ports import free_port


class Place:
    """A bot with a webhook, its double, and what it heard."""

    def __init__(self, double, folder, **options: str) -> None:
        self.double, self.port = double, free_port()
        given = {"api_url": double.url, "webhook": "https://bot.test/telegram", "webhook_port": str(self.port)}
        self.needs = needs(folder, {**given, **options}, TOKEN)
        self.channel = CHANNEL.make(self.needs)
        self.heard: list[Heard] = []
        self.failing = False

    async def hear(self, heard: Heard) -> str:
        if self.failing:
            raise OSError("the disk is full")
        self.heard.append(heard)
        return ""

    async def bring(self, **headers: str) -> list[int]:
        return await self.double.bring(self.needs.http, f"http://127.0.0.1:{self.port}", **headers)

    @asynccontextmanager
    async def listening(self):
        task = asyncio.create_task(self.channel.listen(self.hear))
        try:
            while not self.double.webhook and not task.done():
                await asyncio.sleep(0.01)
            yield task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, OSError, NotNow, TokenRefused):
                await task


@pytest.fixture
async def place(tmp_path):
    async with telegram() as double:
        made = Place(double, tmp_path)
        yield made
        await made.needs.http.close()


async def test_what_is_brought_is_heard_in_its_order(place):
    async with place.listening():
        for number in range(5):
            await place.double.say(f"{number}", chat="7")
        assert await place.bring() == [200] * 5

    assert [said.text for said in place.heard if isinstance(said, Said)] == ["0", "1", "2", "3", "4"]
    assert place.double.webhook["max_connections"] == 1
    assert place.double.webhook["allowed_updates"]


async def test_what_could_not_be_taken_in_is_brought_again(place):
    place.failing = True
    async with place.listening() as task:
        await place.double.say("hello", chat="7")
        with suppress(place.needs.http.failures):
            assert await place.bring() != [200]
        with pytest.raises(OSError, match="disk is full"):
            await task
    place.failing, place.double.webhook = False, {}
    async with place.listening():
        assert await place.bring() == [200]

    assert len(place.heard) == 1


async def test_nobody_else_is_heard(place):
    async with place.listening():
        await place.double.say("hello", chat="7")
        assert await place.bring(**{"X-Telegram-Bot-Api-Secret-Token": "wrong"}) == [403]
        assert await place.bring(**{"X-Telegram-Bot-Api-Secret-Token": ""}) == [403]
        client = place.needs.http.client("http://127.0.0.1")
        url, secret = f"http://127.0.0.1:{place.port}", {"X-Telegram-Bot-Api-Secret-Token": secret_of(TOKEN)}
        answers = [
            await client.post(f"{url}/other", json={"update_id": 1}, headers=secret),
            await client.get(f"{url}/telegram", headers=secret),
            await client.post(f"{url}/telegram", content=b"{", headers=secret),
            await client.post(f"{url}/telegram", json={"update_id": "x"}, headers=secret),
            await client.post(f"{url}/telegram", content=b"x" * 3_000_000, headers=secret),
        ]

    assert [answer.status_code for answer in answers] == [404, 405, 400, 400, 413]
    assert place.heard == []


async def test_polling_takes_a_webhook_away_and_loses_nothing(place, tmp_path):
    async with place.listening():
        pass
    await place.double.say("hello", chat="7")
    given = needs(tmp_path, {"api_url": place.double.url}, TOKEN)
    polling = CHANNEL.make(given)
    task = asyncio.create_task(polling.listen(place.hear))
    async with asyncio.timeout(10):
        while not place.heard:
            await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await given.http.close()

    assert place.double.webhook == {}
    assert WEBHOOK_SET in "can't use getUpdates method while webhook is active"


async def test_a_port_that_is_taken_is_said(place):
    async with listen(Entrance("/x", "s").routes, port=place.port):
        with pytest.raises(NotNow, match=f"Port {place.port} cannot be listened on"):
            await place.channel.listen(place.hear)


async def test_a_webhook_that_telegram_refuses_is_said(place):
    listening = place.channel._listening
    place.channel._listening = replace(listening, webhook=replace(listening.webhook, url="http://bot.test"))

    with pytest.raises(TokenRefused, match="HTTPS URL"):
        await place.channel.listen(place.hear)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"webhook": "http://bot.test"}, "https"), ({"webhook": "https://bot.test", "webhook_port": "99999"}, "65535")],
)
def test_settings_that_cannot_work_are_said(tmp_path, options, words):
    with pytest.raises(ConfigError, match=words):
        CHANNEL.make(needs(tmp_path, options, TOKEN))


def test_the_secret_is_the_same_in_every_process_and_tells_nothing():
    assert secret_of(TOKEN) == secret_of(TOKEN) != secret_of("1:other")
    assert TOKEN not in secret_of(TOKEN)


async def test_more_than_can_wait_is_to_be_brought_again():
    entrance = Entrance("/x", "s")
    headers = {"x-telegram-bot-api-secret-token": "s"}

    def bring(number: int) -> asyncio.Task[Response]:
        body = Body()
        body.put(f'{{"update_id": {number}}}'.encode())
        body.end(whole=True)
        return asyncio.create_task(
            answered(entrance.routes, Request(method="POST", path="/x", headers=headers, pieces=body))
        )

    waiting = [bring(number) for number in range(MOST_WAITING)]
    await asyncio.sleep(0)
    assert (await bring(MOST_WAITING)).status == 503
    acknowledge(await entrance.next())

    assert {(await each).status for each in waiting} == {200}


async def answered(handler: Handler, request: Request) -> Response:
    return await handler(request)
