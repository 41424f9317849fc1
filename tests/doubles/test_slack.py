"""Slack's own SDK talks to the double as to Slack."""

import asyncio

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from tests.doubles.slack import slack_platform


@pytest.fixture
async def platform():
    async with slack_platform() as made:
        yield made


async def test_the_sdk_hears_acknowledges_and_answers(platform):
    web = AsyncWebClient(token="xoxb-1", base_url=f"{platform.url}/api/")
    client = SocketModeClient(app_token="xapp-1", web_client=web)
    heard: list[SocketModeRequest] = []

    async def listen(one: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        heard.append(request)
        await one.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    client.socket_mode_request_listeners.append(listen)
    await client.connect()
    source_id = await platform.say("hello")
    async with asyncio.timeout(10):
        while not platform.received():
            await asyncio.sleep(0.01)
    event = heard[0].payload["event"]
    sent = await web.chat_postMessage(channel=event["channel"], text="hi", thread_ts=event["ts"])
    await web.chat_update(channel="D1", ts=sent["ts"], text="bye")
    await client.close()

    (shown,) = platform.chats.of("D1")
    assert (shown.text, shown.answers, shown.edits) == ("bye", source_id, 1)


async def test_the_sdk_uploads_a_file_and_reads_the_history(platform):
    web = AsyncWebClient(token="xoxb-1", base_url=f"{platform.url}/api/")

    await web.files_upload_v2(channel="D1", content="content", filename="a.txt", title="a.txt")
    history = await web.conversations_history(channel="D1")

    assert list(platform.files.values()) == [b"content"]
    assert history["messages"][0]["files"][0]["title"] == "a.txt"


async def test_the_sdk_is_refused_as_by_slack(platform):
    platform.refusal = "token_revoked"

    with pytest.raises(SlackApiError, match="token_revoked"):
        await AsyncWebClient(token="xoxb-1", base_url=f"{platform.url}/api/").auth_test()


async def test_a_method_that_takes_no_json_refuses_it(platform):
    web = AsyncWebClient(token="xoxb-1", base_url=f"{platform.url}/api/")

    with pytest.raises(SlackApiError, match="invalid_arguments"):
        await web.api_call("users.info", json={"user": "7"})


@pytest.mark.parametrize(
    ("text", "blocks", "refusal"),
    [
        ("x" * 40_001, [], "msg_too_long"),
        ("x", [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}], "invalid_blocks"),
        ("x", [{"type": "divider"}] * 51, "invalid_blocks"),
    ],
)
async def test_what_slack_does_not_take_is_refused(platform, text, blocks, refusal):
    web = AsyncWebClient(token="xoxb-1", base_url=f"{platform.url}/api/")

    with pytest.raises(SlackApiError, match=refusal):
        await web.chat_postMessage(channel="D1", text=text, blocks=blocks)


async def test_a_changed_message_may_be_no_longer_than_4000_signs(platform):
    web = AsyncWebClient(token="xoxb-1", base_url=f"{platform.url}/api/")
    sent = await web.chat_postMessage(channel="D1", text="hi")

    with pytest.raises(SlackApiError, match="msg_too_long"):
        await web.chat_update(channel="D1", ts=sent["ts"], text="x" * 4001)
