"""The OpenAI protocol as a whole, judged by OpenAI's own SDK."""

from __future__ import annotations

from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.model_servers import openai_model
from tests.sdks import openai_talk

HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": SCHEMA}}]


async def test_the_sdk_makes_a_tool_round_trip():
    script = [[Say("Reading."), Call("read_file", {"path": "ä.txt"})], Say("It says hello.")]
    async with openai_talk(openai_model(script)) as (server, client):
        async with client.chat.completions.stream(model="m", messages=HELLO, tools=TOOLS) as stream:
            first = (await stream.get_final_completion()).choices[0].message
        call = first.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": "hello"}
        back = [*HELLO, first.model_dump(include={"role", "content", "tool_calls"}), result]
        second = await client.chat.completions.create(model="m", messages=back, tools=TOOLS)

    assert (call.function.name, call.function.arguments) == ("read_file", '{"path": "ä.txt"}')
    assert second.choices[0].message.content == "It says hello."
    assert server.asked[1].last.parts[0].name == "read_file"


async def test_a_repeated_beginning_counts_as_cached():
    long = [{"role": "system", "content": "word " * 1000}, *HELLO]
    async with openai_talk(openai_model([Say("Yes.")])) as (_server, client):
        first = await client.chat.completions.create(model="m", messages=long)
        again = await client.chat.completions.create(model="m", messages=long)

    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert again.usage.prompt_tokens_details.cached_tokens >= 1152
