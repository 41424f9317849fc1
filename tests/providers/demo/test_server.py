"""The demo's model over its real socket."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx2
import openai
import pytest

from hermes_agent.providers.demo.script import Pace
from hermes_agent.providers.demo.server import demo_server, unpack_project

HELLO = [{"role": "user", "content": "hello"}]
TERMINAL = {"type": "function", "function": {"name": "terminal", "parameters": {"type": "object"}}}


async def test_the_demo_streams_to_openais_own_client():
    async with demo_server(pace=Pace()) as url, openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        question = [{"role": "user", "content": "run `date`"}]
        async with client.chat.completions.stream(model="scripted", messages=question, tools=[TERMINAL]) as stream:
            message = (await stream.get_final_completion()).choices[0].message

    assert message.tool_calls[0].function.arguments == '{"command": "date"}'


async def test_the_demo_answers_in_one_piece_too():
    async with demo_server(pace=Pace()) as url, openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        reply = await client.chat.completions.create(model="scripted", messages=HELLO)
        names = [model.id async for model in client.models.list()]

    assert "scripted model" in reply.choices[0].message.content
    assert reply.usage.total_tokens > 0
    assert names == ["scripted"]


async def test_the_demo_refuses_what_is_no_question():
    async with demo_server() as url, openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="scripted", messages=[])
        async with httpx2.AsyncClient() as plain:
            assert (await plain.get(f"{url}/nothing")).status_code == 404


def test_the_project_unpacks_with_exactly_one_failing_test(tmp_path: Path):
    unpack_project(tmp_path / "new" / "folder")
    tests = subprocess.run(
        ["python3", "-m", "unittest"], cwd=tmp_path / "new/folder", capture_output=True, text=True, check=False
    )

    assert tests.stderr.rstrip().endswith("FAILED (failures=1)")
    assert (tmp_path / "new/folder/README.md").is_file()
    assert not list(tmp_path.rglob("*.txt"))
