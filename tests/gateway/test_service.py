"""What a platform's answer, or none, means for what was asked."""

import pytest

from hermes_agent.gateway.channel import NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.service import Answer, Service, seconds
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Cut, Request, Response


@pytest.fixture
async def http():
    made = Http()
    yield made
    await made.close()


async def asked(http: Http, response: Response | Cut, *, reads: bool = False, most: int = 10**6) -> Answer:
    async def handle(request: Request) -> Response:
        if isinstance(response, Cut):
            raise response
        return response

    async with serve(handle) as server:
        service = Service(title="It", http=http, headers={"Authorization": "x"})
        return await service.call("POST", f"{server.url}/a", content={"a": 1}, reads=reads, most=most)


async def test_an_answer_is_read(http):
    assert (await asked(http, Response(body=b'{"a": 1}'))).values() == {"a": 1}


async def test_of_a_body_that_is_too_large_no_more_is_read_than_shows_it(http):
    assert 1000 < len((await asked(http, Response(body=b"x" * 5_000_000), most=1000)).body) < 10**6


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]"])
async def test_an_answer_that_is_none_leaves_it_open(http, body):
    with pytest.raises(OutcomeUnknown):
        (await asked(http, Response(body=body))).values()


async def test_a_busy_platform_says_when(http):
    with pytest.raises(NotNow) as refused:
        await asked(http, Response(status=429, headers={"retry-after": "2.5"}))

    assert refused.value.retry_after == 2.5
    assert seconds(Answer(status=429, headers={"retry-after": "Sun, 22 Nov"}, body=b"")) == 1.0


async def test_a_failed_platform_did_nothing(http):
    with pytest.raises(NotNow):
        await asked(http, Response(status=503))


async def test_a_token_that_is_not_known_is_one(http):
    with pytest.raises(TokenRefused):
        await asked(http, Response(status=401))


async def test_a_lost_answer_matters_only_where_something_was_to_be_done(http):
    with pytest.raises(OutcomeUnknown):
        await asked(http, Cut(reset=True))
    with pytest.raises(NotNow):
        await asked(http, Cut(reset=True), reads=True)


async def test_a_platform_that_cannot_be_reached_did_nothing(http):
    with pytest.raises(NotNow, match="cannot be reached"):
        await Service(title="It", http=http).call("GET", "http://127.0.0.1:1/")
