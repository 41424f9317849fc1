"""What every model server does, shown with OpenAI's own SDK."""

from __future__ import annotations

import openai
import pytest

from hermes_agent.core.messages import Role
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.sdks import openai_talk

HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": SCHEMA}}]


async def test_a_wrong_key_is_the_sdks_authentication_error():
    async with openai_talk(openai_model([Say("Yes.")]), "wrong") as (_server, client):
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.chat.completions.create(model="m", messages=HELLO)

    assert caught.value.code == "invalid_api_key"


async def test_an_unknown_model_is_the_sdks_not_found_error():
    async with openai_talk(openai_model([Say("Yes.")], models=("other",))) as (_server, client):
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="m", messages=HELLO)
        names = [model.id async for model in client.models.list()]

    assert (caught.value.code, names) == ("model_not_found", ["other"])


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (413, openai.APIStatusError),
        (403, openai.PermissionDeniedError),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_status_is_the_sdks_typed_error(status, error, stream):
    fault = Status(status, "slowly", headers={"retry-after": "7"})
    async with openai_talk(openai_model([fault])) as (_server, client):
        with pytest.raises(error) as caught:
            await client.chat.completions.create(model="m", messages=HELLO, stream=stream)

    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.body["message"] == "slowly"


async def test_every_request_is_kept_as_it_came():
    async with openai_talk(openai_model([Say("Yes.")])) as (server, client):
        await client.chat.completions.create(model="m", messages=HELLO)
        await client.chat.completions.create(model="m", messages=HELLO)

    one, two = server.exchanges
    assert one.body == {"messages": HELLO, "model": "m"}
    assert b'"hello"' in one.request.body
    assert one.arrived <= one.ended <= two.arrived
    assert server.asked[0].last.role is Role.USER


def test_the_blocking_sdk_can_speak_to_a_thread():
    from_thread = openai_model([Say("Yes.")])
    with serving_in_thread(from_thread) as server, openai.OpenAI(base_url=server.url, api_key="test-key") as client:
        assert client.chat.completions.create(model="m", messages=HELLO).choices[0].message.content == "Yes."
