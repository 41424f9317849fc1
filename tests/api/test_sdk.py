"""The `openai` SDK as the client: chat, streams, responses, errors, many at once."""

import asyncio

import openai
import pytest

from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.testing.faults import Hang, Status
from tests.api.served import MEMBER_KEY, OWNER_KEY, Server, served, until
from tests.app.place import counting

SAID = [{"role": "user", "content": "Hi"}]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def sdk(server: Server, key: str = OWNER_KEY, retries: int = 0) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=retries, timeout=20)


async def test_chat_whole_and_streamed(tmp_path):
    async with served(tmp_path, counting) as server, sdk(server) as client:
        whole = await client.chat.completions.create(model="hermes", messages=SAID)
        stream = await client.chat.completions.create(
            model="hermes", messages=SAID, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]

    assert whole.choices[0].message.content == "Reply 1."
    assert whole.usage is not None
    assert "".join(c.delta.content or "" for chunk in chunks for c in chunk.choices) == "Reply 1."
    assert chunks[-1].usage is not None
    assert chunks[-2].choices[0].finish_reason == "stop"


async def test_responses_follow_one_another(tmp_path):
    async with served(tmp_path, counting) as server, sdk(server) as client:
        first = await client.responses.create(model="hermes", input="Hi", instructions="Be brief.")
        second = await client.responses.create(model="hermes", input="More", previous_response_id=first.id)
        other = await client.responses.create(model="hermes", input="Another way", previous_response_id=first.id)
        events = [event async for event in await client.responses.create(model="hermes", input="Hi", stream=True)]
        kept = await client.responses.retrieve(second.id)

    assert [each.output_text for each in (first, second, other)] == ["Reply 1.", "Reply 2.", "Reply 2."]
    assert kept.output_text == "Reply 2."
    assert first.usage is not None
    assert [event.type for event in events][:2] == ["response.created", "response.in_progress"]
    numbers = [event.sequence_number for event in events]
    assert numbers[:4] == [0, 1, 2, 3]
    assert numbers == sorted(set(numbers))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "Reply 1."


async def test_instructions_are_for_their_response_and_what_the_system_said_stays(tmp_path):
    rule = {"role": "developer", "content": "Be polite."}
    async with served(tmp_path, counting) as server, sdk(server) as client:
        first = await client.responses.create(
            model="hermes", instructions="Be brief.", input=[rule, {"role": "user", "content": "Hi"}]
        )
        second = await client.responses.create(model="hermes", input="More", previous_response_id=first.id)
        third = await client.responses.create(
            model="hermes", input="And more", instructions="Be long.", previous_response_id=second.id
        )
        notes = [str(exchange.body["messages"][-1]) for exchange in server.model.exchanges]

    assert (first.instructions, second.instructions, third.instructions) == ("Be brief.", None, "Be long.")
    found = [[words for words in ("Be brief.", "Be long.", "Be polite.") if words in note] for note in notes]
    assert found == [["Be brief.", "Be polite."], ["Be polite."], ["Be long.", "Be polite."]]


async def test_a_response_in_the_background_is_asked_for_later(tmp_path):
    slow = Answer(pieces=(Say("At last."),), pace=Pace(first=0.3))
    async with served(tmp_path, [slow]) as server, sdk(server) as client:
        begun = await client.responses.create(model="hermes", input="Hi", background=True)
        assert begun.status == "queued"
        async with asyncio.timeout(10):
            while (found := await client.responses.retrieve(begun.id)).status != "completed":
                await asyncio.sleep(0.05)
        assert found.output_text == "At last."


async def test_a_response_is_kept_and_removed_with_its_session(tmp_path):
    picture = "data:image/png;base64,iVBORw0KGgo="
    file = {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,YQ=="}
    said = [{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": picture}, file]
    async with served(tmp_path, counting) as server, sdk(server) as client:
        first = await client.responses.create(model="hermes", input=[{"role": "user", "content": said}])
        second = await client.responses.create(model="hermes", input="More", previous_response_id=first.id)
        with pytest.raises(openai.ConflictError, match="removes them all"):
            await client.responses.delete(first.id)
        alone = await client.responses.create(model="hermes", input="Alone")
        await client.responses.delete(alone.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(alone.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.delete(alone.id)
        kept = await client.responses.retrieve(second.id)

    assert kept.output_text == "Reply 2."


async def test_models_are_listed(tmp_path):
    async with served(tmp_path, counting) as server, sdk(server) as client:
        names = [model.id async for model in await client.models.list()]
        assert names == ["hermes", "custom/m"]
        assert (await client.models.retrieve("hermes")).id == "hermes"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-4")


async def test_errors_are_the_sdk_s_own(tmp_path):
    async with served(tmp_path, [Status(401)]) as server:
        async with sdk(server, "wrong-key-0123456789") as stranger:
            with pytest.raises(openai.AuthenticationError, match="Send a key"):
                await stranger.models.list()
        async with sdk(server, retries=2) as client:
            with pytest.raises(openai.BadRequestError, match="Tools run inside"):
                await client.chat.completions.create(model="hermes", messages=SAID, tools=[{"type": "function"}])
            with pytest.raises(openai.InternalServerError) as failed:
                await client.chat.completions.create(model="hermes", messages=SAID)
            with pytest.raises(openai.NotFoundError):
                await client.responses.create(
                    model="hermes", input="Hi", previous_response_id="resp_20260101_000000_abcdef_9"
                )
        assert failed.value.code == "provider_failed"
        assert len(server.model.exchanges) == 1  # It is not tried again where that would help nobody.


async def test_every_refusal_has_its_class_and_says_what_to_do(tmp_path):
    async with served(tmp_path, [Call("clarify", {"question": "Which one?"})]) as server, sdk(server) as client:
        async with sdk(server, MEMBER_KEY) as member:
            with pytest.raises(openai.PermissionDeniedError, match="Only the owner"):
                await member.chat.completions.create(model="custom/m", messages=SAID)
        asked = await client.chat.completions.create(model="hermes", messages=SAID)
        session = {"X-Hermes-Session-Id": asked.hermes["session"]}
        with pytest.raises(openai.ConflictError, match="waits for an answer"):
            await client.chat.completions.create(model="hermes", messages=SAID, extra_headers=session)


async def test_a_client_that_does_not_wait_makes_room_for_others_and_ends_no_run(tmp_path):
    async with served(tmp_path, lambda heard: Hang(), api="  max_waiting: 1\n") as server, sdk(server) as client:
        waiting = asyncio.create_task(client.chat.completions.create(model="hermes", messages=SAID))
        async with asyncio.timeout(20):
            while not (begun := (await server.ask("GET", "/v1/sessions")).json()["data"]):
                await asyncio.sleep(0.02)
            (left,) = begun
            waiting.cancel()
            while "hermes_runs_waited_for 0" not in (await server.ask("GET", "/metrics")).text:
                await asyncio.sleep(0.02)
        assert server.runtime.hermes.runs(left["id"])

        stream = await client.chat.completions.create(model="hermes", messages=SAID, stream=True)
        await anext(aiter(stream))
        with pytest.raises(openai.RateLimitError, match="Try again") as busy:
            await client.chat.completions.create(model="hermes", messages=SAID)
        await stream.close()

    assert busy.value.response.headers["retry-after"] == "1"


async def test_a_client_that_leaves_in_mid_stream_loses_nothing(tmp_path):
    slow = Answer(pieces=(Say("One two three four five."),), pace=Pace(first=0.1, between=0.1, characters=4))
    async with served(tmp_path, [slow]) as server, sdk(server) as client:
        stream = await client.chat.completions.create(model="hermes", messages=SAID, stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        over = await until(server, chunk.id.replace("chatcmpl", "run"), "answered")

    assert over["text"] == "One two three four five."


@pytest.mark.parametrize("way", ["chat", "responses"])
async def test_a_client_that_leaves_a_stream_makes_room_for_others_while_its_run_goes_on(tmp_path, way):
    slow = Answer(pieces=(Say("word " * 400),), pace=Pace(between=0.02, characters=5))
    async with served(tmp_path, [slow], api="  max_waiting: 1\n") as server, sdk(server) as client:
        if way == "chat":
            stream = await client.chat.completions.create(model="hermes", messages=SAID, stream=True)
        else:
            stream = await client.responses.create(model="hermes", input="Hi", stream=True)
        run = stream.response.headers["x-hermes-run-id"]
        await anext(aiter(stream))
        await stream.close()
        async with asyncio.timeout(5):
            while "hermes_runs_waited_for 0" not in (await server.ask("GET", "/metrics")).text:
                await asyncio.sleep(0.05)
        assert (await server.ask("GET", f"/v1/runs/{run}")).json()["status"] in ("queued", "running")


async def test_a_picture_as_a_data_url_reaches_the_model(tmp_path):
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    said = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}]
    async with served(tmp_path, counting) as server, sdk(server) as client:
        await client.chat.completions.create(model="hermes", messages=said)
        sent = str(server.model.exchanges[0].body["messages"])

    assert PIXEL in sent or "picture" in sent  # A model that sees none is told so.


async def test_fifty_at_once_are_all_answered(tmp_path):
    async with served(tmp_path, counting) as server:
        client = openai.AsyncOpenAI(
            base_url=f"{server.url}/v1",
            api_key=OWNER_KEY,
            max_retries=0,
            timeout=25,
        )
        async with client, asyncio.TaskGroup() as group:
            asked = [
                group.create_task(
                    client.chat.completions.create(
                        model="hermes", messages=[{"role": "user", "content": f"Number {number}"}]
                    )
                )
                for number in range(50)
            ]
        replies = [task.result() for task in asked]

    assert {reply.choices[0].message.content for reply in replies} == {"Reply 1."}
    assert len({reply.id for reply in replies}) == 50
