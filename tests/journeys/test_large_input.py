"""Input that no window takes, through every way in: the model reads its last line with its tools, the person is told,
and nothing of it is lost."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from hermes_agent.app.library import Agent
from hermes_agent.app.opening import Options
from hermes_agent.core.errors import InputTooLarge
from hermes_agent.core.events import Asked, MessageTaken, Notice
from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.api.served import lines, served, until
from tests.app.place import place, settle_home
from tests.cli.shell import program
from tests.gateway.harness import Harness, eventually, harness

LAST = "the very last line"
LARGE = "".join(f"line {number} of a long report\n" for number in range(17_000)) + LAST
"""500 kB."""
WHERE = re.compile(r"(\d[\d,]*) line ends, kept whole in `([^`]+)`")
TOLD = "is too large for the model's window (128,000 tokens)"


def reads_on(heard: Heard) -> object:
    """A model that reads the end of what it is told is in a file, and quotes the last line."""
    if heard.last.text == "Ask me":
        return Call("clarify", {"question": "Which?"})
    results = [part.text for part in heard.last.parts if isinstance(part, ToolResult)]
    if found := WHERE.search("".join(results) or heard.last.text):
        return Call("read_file", {"path": found[2], "offset": int(found[1].replace(",", "")) + 1})
    if results:
        return Say(f"It ends with: {results[0].splitlines()[-1]}")
    return Say(f"Nothing is large in {len(heard.last.text)} characters.")


def the_file(home: Path) -> str:
    """All that is kept of large input."""
    (kept,) = (home / "cache" / "input").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    return kept.read_text()


def test_piped_into_a_question(home: Path) -> None:
    with serving_in_thread(openai_model(reads_on, keys=())) as model:
        settle_home(home, model.url)
        said = program("-z", "How does it end?", home=home, stdin=LARGE.encode())

    assert (said.code, said.out) == (0, f"It ends with: 17001|{LAST}\n")
    assert TOLD in said.err
    assert the_file(home).strip() == LARGE


async def test_as_a_message_of_a_session(tmp_path: Path) -> None:
    async with place(tmp_path, reads_on) as here:
        ended = await here.say(LARGE)
        events = [entry.event for entry in await here.log()]

    assert ended.text == f"It ends with: 17001|{LAST}"
    assert [event for event in events if isinstance(event, Notice) and TOLD in event.text]
    (taken,) = (event for event in events if isinstance(event, MessageTaken))
    assert len(taken.message.text) < 25_000
    assert taken.message.text.startswith("line 0 of a long report\n")
    assert the_file(tmp_path / "home") == LARGE


async def test_as_the_answer_to_a_question(tmp_path: Path) -> None:
    async with place(tmp_path, reads_on) as here:
        before = await here.tell("Ask me")
        asked = await here.until(Asked)
        await here.tell(here.inbound(LARGE, answers=asked.event.question))
        ended = await here.ended(before)
        events = [entry.event for entry in await here.log()]

    assert LAST in ended.text
    assert [event for event in events if isinstance(event, Notice) and TOLD in event.text]


@pytest.mark.parametrize("stream", [False, True])
async def test_over_the_api_as_a_chat_that_goes_on(tmp_path: Path, stream: bool) -> None:
    async with served(tmp_path, reads_on) as server:
        answer = await server.chat(LARGE, stream=stream)
        session = answer.headers["x-hermes-session-id"]
        told = (await server.ask("GET", f"/v1/runs/{answer.headers['x-hermes-run-id']}")).json()["notices"]
        again = await server.chat(LARGE, f"It ends with: 17001|{LAST}", "Thanks")

    told_live = [chunk["choices"][0]["delta"].get("content", "") for chunk in lines(answer.text)] if stream else []
    assert LAST in ("".join(told_live) or answer.text)
    assert TOLD in told[0]
    assert stream or answer.json()["hermes"]["notices"] == told
    assert again.headers["x-hermes-session-id"] == session


async def test_over_the_api_as_a_response_a_run_and_a_file(tmp_path: Path) -> None:
    data = f"data:text/plain;base64,{base64.b64encode(LARGE.encode()).decode()}"
    item = {"role": "user", "content": [{"type": "input_file", "file_data": data, "filename": "report.txt"}]}
    async with served(tmp_path, reads_on) as server:
        as_text = (await server.ask("POST", "/v1/responses", {"input": LARGE})).json()
        as_file = (await server.ask("POST", "/v1/responses", {"input": [item]})).json()
        run = (await server.ask("POST", "/v1/runs", {"input": LARGE})).json()
        await until(server, run["id"], "answered")
        as_run = (await server.ask("GET", f"/v1/runs/{run['id']}")).json()

    for body in (as_text["hermes"], as_file["hermes"], as_run):
        assert (body["text"], TOLD in body["notices"][0]) == (f"It ends with: 17001|{LAST}", True)


async def test_told_in_a_chat_where_only_the_owner_learns_where_the_file_lies(tmp_path: Path) -> None:
    async with harness(tmp_path, reads_on, "owners: ['7']\nguests: ['8']\n") as there:
        said = {}
        for user in ("7", "8"):
            await there.platform.say(LARGE, user=user, chat=user)
            await eventually(lambda user=user: LAST in words_in(there, user) or "no tool" in words_in(there, user))
            said[user] = words_in(there, user)

    assert all(TOLD in words for words in said.values())
    assert LAST in said["7"]
    assert ("/cache/input/" in said["7"], "/cache/input/" in said["8"]) == (True, False)


def words_in(there: Harness, chat: str) -> str:
    return " ".join(shown.text for shown in there.platform.chats.of(chat))


def test_given_to_the_library(home: Path, tmp_path: Path) -> None:
    with serving_in_thread(openai_model(reads_on, keys=())) as model:
        settle_home(home, model.url)
        reply = Agent(home=home, workspace=tmp_path, toolsets=["files"]).run(LARGE)

    assert reply == f"It ends with: 17001|{LAST}"


async def test_refused_where_that_is_wanted_and_nothing_is_kept(tmp_path: Path) -> None:
    async with place(tmp_path, reads_on, Options(strict_input=True)) as here:
        with pytest.raises(InputTooLarge, match=r"464,908 bytes, and one message to this model may have 128,000"):
            await here.tell(LARGE)
        assert (await here.say("Hi")).text == "Nothing is large in 2 characters."

    assert not (tmp_path / "home" / "cache" / "input").exists()
