"""Requests on their way in, and which session they mean when several come at once."""

import asyncio

import pytest

from hermes_agent.api.endpoint import AppState, Nothing
from hermes_agent.api.serve import ENDPOINTS
from hermes_agent.api.service import AgentService, Wish
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.inbound.message import Refused
from hermes_agent.providers.demo.script import Answer, Pace, Say
from tests.api.served import MEMBER_KEY, OWNER_KEY, served
from tests.app.place import counting, place


async def test_the_same_request_twice_at_once_is_one_run(tmp_path):
    async with served(tmp_path, counting) as server, asyncio.TaskGroup() as group:
        headers = {"idempotency-key": "order-7"}
        both = [group.create_task(server.chat("Hi", headers=headers)) for _ in range(4)]
    assert len({each.result().json()["id"] for each in both}) == 1


async def test_two_ways_on_from_one_answer_at_once_are_two_sessions(tmp_path):
    slow = Answer(pieces=(Say("Reply."),), pace=Pace(first=0.2))
    async with served(tmp_path, lambda heard: slow) as server:
        first = (await server.chat("Hi")).json()["hermes"]["session"]
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(server.chat("Hi", "Reply.", text)) for text in ("One", "Two")]
        sessions = {each.result().json()["hermes"]["session"] for each in both}

    assert len(sessions) == 2
    assert first in sessions


async def test_each_address_says_which_methods_it_takes(tmp_path):
    methods: dict[str, set[str]] = {}
    for each in ENDPOINTS:
        methods.setdefault(each.path.replace("{id:path}", "x").replace("{id}", "x"), set()).add(each.method)
    async with served(tmp_path, counting) as server:
        for path, known in methods.items():
            answer = await server.ask("PUT", path)
            allowed = set(answer.headers["allow"].split(", "))
            assert (answer.status_code, allowed - {"HEAD"}, "HEAD" in allowed) == (405, known, "GET" in known)


NOUNS = {
    "responses": "response",
    "runs": "run",
    "sessions": "session",
    "models": "model",
    "goals": "goal",
    "jobs": "job",
    "board": "card",
}
BODIES = {"jobs": {"name": "x"}, "board": {"title": "x"}}
BODY = {"title": "x", "answer": "x", "state": "paused"}


@pytest.mark.parametrize("id_", ["x", "{noun}_20260101_000000_abcdef_7", "deleted", "another's"])
async def test_what_is_not_there_any_more_is_said_to_be_missing_by_its_own_name(tmp_path, id_):
    """Whatever the id looks like, at each address that has one."""
    async with served(tmp_path, counting) as server:
        made = (await server.ask("POST", "/v1/responses", {"input": "Hi"})).json()
        session = made["hermes"]["session"]
        named = {"responses": made["id"], "runs": made["hermes"]["id"], "sessions": session}
        if id_ == "deleted":
            await server.ask("DELETE", f"/v1/responses/{made['id']}")
        for each in ENDPOINTS:
            if "{id" not in each.path:
                continue
            kind = each.path.split("/")[2]
            is_there = id_ in ("deleted", "another's")
            path = (
                each.path.replace(":path", "")
                .replace("{verb}", "start")
                .replace("{id}", named.get(kind, "x") if is_there else id_.format(noun=kind))
            )
            body = BODIES.get(kind, BODY) if each.body is not Nothing else None
            answer = await server.ask(each.method, path, body, key=MEMBER_KEY if id_ == "another's" else OWNER_KEY)
            error = answer.json()["error"]
            assert (answer.status_code, error["type"]) == (404, "not_found_error"), (each.method, path)
            assert error["message"].startswith(f"There is no {NOUNS[kind]} "), (each.method, path, error)
        body = {"input": "Hi", "previous_response_id": named["responses"] if id_ == "deleted" else "resp_x"}
        error = (await server.ask("POST", "/v1/responses", body)).json()["error"]
        assert (error["param"], error["code"]) == ("previous_response_id", "previous_response_not_found")


async def test_a_whole_number_may_be_written_with_a_point(tmp_path):
    async with served(tmp_path, counting) as server:
        assert (await server.chat("Hi", n=1.0)).status_code == 200
        assert (await server.chat("Hi", n=1.5)).json()["error"]["param"] == "n"


async def test_what_follows_an_answer_that_is_not_whole_is_refused(tmp_path):
    slow = Answer(pieces=(Say("Reply."),), pace=Pace(first=0.5))
    async with served(tmp_path, [slow]) as server:
        begun = (await server.ask("POST", "/v1/responses", {"input": "Hi", "background": True})).json()
        while (await server.ask("GET", f"/v1/responses/{begun['id']}")).json()["status"] == "queued":
            await asyncio.sleep(0.01)
        early = await server.ask("POST", "/v1/responses", {"input": "And?", "previous_response_id": begun["id"]})
        assert (early.status_code, early.json()["error"]["code"]) == (409, "not_over")


async def test_without_room_nothing_is_taken_in(tmp_path):
    async with place(tmp_path, counting) as here:
        talk = AgentService(here.runtime)
        talk.waiting = here.runtime.settings.api.max_waiting
        wish = Wish(who=here.runtime.owner, parts=(Text(text="Hi", origin=Origin.OWNER),), words="Hi")
        with pytest.raises(Refused) as full:
            await talk.say(wish)
        assert full.value.status == 429
        assert AppState.access is not None
