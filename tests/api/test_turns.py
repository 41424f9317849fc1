"""Requests of one session take turns: each has a run, a reply, instructions and a model of its own, whichever endpoint
it came through."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from hermes_agent.api.serve import ENDPOINTS
from hermes_agent.core.events import MessageTaken, RunEnded, RunStarted
from hermes_agent.core.messages import Role
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from tests.api.served import Server, lines, served, until

CHAT, RESPONSES, RUNS = "/v1/chat/completions", "/v1/responses", "/v1/runs"
NAMED = {"x-hermes-session-key": "ours"}
Headers = Mapping[str, str]
Reply = tuple[str, str]


def two_turns(heard: Heard) -> Answer:
    """First a tool, so that there is a turn at which mail could be read; then the words that were said last."""
    if heard.messages[-1].role is Role.TOOL:
        return Answer(pieces=(Say(f"About {last(heard)}."),))
    return Answer(pieces=(Call("todo", {}),), pace=Pace(first=0.05))


def last(heard: Heard) -> str:
    return [message.text for message in heard.messages if message.role is Role.USER][-1]


def said(text: str, **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], **more}


async def chat(server: Server, text: str, headers: Headers) -> Reply:
    answer = (await server.ask("POST", CHAT, said(text), headers=headers)).json()
    return answer["choices"][0]["message"]["content"], answer["hermes"]["session"]


async def chat_streamed(server: Server, text: str, headers: Headers) -> Reply:
    answer = await server.ask("POST", CHAT, said(text, stream=True), headers=headers)
    words = [each["delta"].get("content", "") for line in lines(answer.text) for each in line["choices"]]
    return "".join(words), answer.headers["x-hermes-session-id"]


async def response(server: Server, text: str, headers: Headers) -> Reply:
    answer = (await server.ask("POST", RESPONSES, {"input": text}, headers=headers)).json()
    return answer["output"][0]["content"][0]["text"], answer["hermes"]["session"]


async def response_streamed(server: Server, text: str, headers: Headers) -> Reply:
    answer = await server.ask("POST", RESPONSES, {"input": text, "stream": True}, headers=headers)
    return lines(answer.text)[-1]["response"]["hermes"]["text"], answer.headers["x-hermes-session-id"]


async def response_later(server: Server, text: str, headers: Headers) -> Reply:
    answer = (await server.ask("POST", RESPONSES, {"input": text, "background": True}, headers=headers)).json()
    return (await until(server, answer["hermes"]["id"], "answered"))["text"], answer["hermes"]["session"]


async def run_alone(server: Server, text: str, headers: Headers) -> Reply:
    answer = (await server.ask("POST", RUNS, {"input": text, "busy": "alone"}, headers=headers)).json()
    return (await until(server, answer["id"], "answered"))["text"], answer["session"]


WAYS: dict[str, tuple[tuple[str, Callable[[Server, str, Headers], Awaitable[Reply]]], ...]] = {
    CHAT: (("chat", chat), ("streamed chat", chat_streamed)),
    RESPONSES: (("response", response), ("streamed response", response_streamed), ("later", response_later)),
    RUNS: (("run", run_alone),),
}
ALL = tuple(way for ways in WAYS.values() for way in ways)


def test_every_endpoint_that_says_something_is_among_the_ways():
    saying = {"messages", "input"}
    assert {each.path for each in ENDPOINTS if saying & set(each.body.__struct_fields__)} == WAYS.keys()


async def test_as_many_requests_at_once_as_there_are_ways_get_each_its_own_answer(tmp_path):
    names = [f"{name} {number}" for number in (1, 2) for name, _ in ALL]
    async with served(tmp_path, two_turns) as server, asyncio.TaskGroup() as group:
        asked = {
            name: group.create_task(way(server, name, NAMED))
            for name, (_, way) in zip(names, (*ALL, *ALL), strict=True)
        }
        replies = {name: await task for name, task in asked.items()}
        sessions = {session for _, session in replies.values()}
        entries = await server.log(sessions.copy().pop())

    assert {name: text for name, (text, _) in replies.items()} == {name: f"About {name}." for name in names}
    assert len(sessions) == 1
    kinds = (RunStarted, MessageTaken, RunEnded)
    turns = [type(each.event) for each in entries if isinstance(each.event, kinds)]
    assert turns == [*kinds] * len(names)
    heard = [each.event.message.text for each in entries if isinstance(each.event, MessageTaken)]
    assert [f"About {words}." for words in heard] == [
        each.event.text for each in entries if isinstance(each.event, RunEnded)
    ]


async def test_requests_are_answered_in_the_order_in_which_they_came(tmp_path):
    names = [name for name, _ in ALL]
    async with served(tmp_path, two_turns) as server:
        begun = []
        for name in names:
            headers = NAMED if not begun else {"x-hermes-session-id": begun[0]["session"]}
            begun.append((await server.ask("POST", RUNS, {"input": name, "busy": "alone"}, headers=headers)).json())
        ended = [(await until(server, each["id"], "answered"))["text"] for each in begun]
        entries = await server.log(begun[0]["session"])

    assert ended == [f"About {name}." for name in names]
    assert [each.event.text for each in entries if isinstance(each.event, RunEnded)] == ended


async def test_a_client_that_leaves_while_it_waits_costs_nobody_an_answer(tmp_path):
    async with served(tmp_path, two_turns) as server, asyncio.TaskGroup() as group:
        first = group.create_task(chat(server, "one", NAMED))
        while not server.model.exchanges:
            await asyncio.sleep(0.01)
        leaving = group.create_task(chat(server, "two", NAMED))
        while not await accepted(server, 2):
            await asyncio.sleep(0.01)
        third = group.create_task(chat_streamed(server, "three", NAMED))
        leaving.cancel()
        session = (await first)[1]

        assert (await first)[0] == "About one."
        assert (await third) == ("About three.", session)
        texts = [each.event.text for each in await server.log(session) if isinstance(each.event, RunEnded)]
        assert texts == ["About one.", "About two.", "About three."]


async def accepted(server: Server, count: int) -> bool:
    """Whether so many messages were taken in."""
    mail = [await server.runtime.store.inbox.at(row) for row in range(1, count + 1)]
    return all(mail)


async def test_a_repeated_request_that_waits_its_turn_is_one_request(tmp_path):
    async with served(tmp_path, two_turns) as server, asyncio.TaskGroup() as group:
        once = {**NAMED, "idempotency-key": "k"}
        asked = [
            group.create_task(chat(server, "one", NAMED)),
            group.create_task(chat(server, "two", once)),
            group.create_task(chat_streamed(server, "two", once)),
        ]
        replies = [await each for each in asked]
        entries = await server.log(replies[0][1])

    assert [text for text, _ in replies] == ["About one.", "About two.", "About two."]
    assert sum(isinstance(each.event, RunEnded) for each in entries) == 2


async def test_what_a_request_says_of_how_it_is_answered_is_for_that_request_alone(tmp_path):
    """Whatever order they come in: a system message, instructions, and a model."""
    async with served(tmp_path, two_turns) as server, asyncio.TaskGroup() as group:
        first = (await server.ask("POST", RESPONSES, {"input": "zero"}, headers=NAMED)).json()
        system = {"role": "system", "content": "Be a poet."}
        bodies = {
            "one": (CHAT, {"messages": [system, {"role": "user", "content": "one"}], "model": "custom/poet"}),
            "two": (CHAT, said("two")),
            "three": (RESPONSES, {"input": "three", "instructions": "Be a clerk.", "model": "custom/clerk"}),
            "four": (RESPONSES, {"input": "four"}),
            "five": (RUNS, {"input": "five", "instructions": "Be a cook.", "model": "custom/cook", "busy": "alone"}),
            "six": (RUNS, {"input": "six", "busy": "alone"}),
        }
        asked = {
            name: group.create_task(server.ask("POST", path, body, headers=NAMED))
            for name, (path, body) in bodies.items()
        }
        answers = {name: (await task).json() for name, task in asked.items()}
        for name in ("five", "six"):
            answers[name] = await until(server, answers[name]["id"], "answered")
        exchanges = [each.body for each in server.model.exchanges]
        record = await server.runtime.store.sessions.get(first["hermes"]["session"])

    models = {"one": "custom/poet", "three": "custom/clerk", "five": "custom/cook"}
    assert {name: answer["model"] for name, answer in answers.items()} == {
        name: models.get(name, "custom/m") for name in bodies
    }
    for body in exchanges:
        name = [message["content"] for message in body["messages"] if message["role"] == "user"][-1]
        notes = [text for message in body["messages"] for text in (str(message["content"]),) if "<runtime" in text]
        assert held(notes) == {"one": "Be a poet.", "three": "Be a clerk.", "five": "Be a cook."}.get(own(name), "")
        assert body["model"] == models.get(own(name), "custom/m").removeprefix("custom/")
    assert record is not None
    assert record.model == ""


def own(content: object) -> str:
    """The person's words of a message as it was sent."""
    text = content if isinstance(content, str) else " ".join(str(part) for part in content)
    return next(name for name in ("zero", "one", "two", "three", "four", "five", "six") if name in text)


def held(notes: list[str]) -> str:
    """What the last note of pins says."""
    told = ""
    for note in notes:
        if "## Pinned by the person" in note:
            told = note.partition("## Pinned by the person")[2]
    return next((words for words in ("Be a poet.", "Be a clerk.", "Be a cook.") if words in told), "")
