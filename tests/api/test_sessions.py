"""Sessions and search over HTTP: everybody's own, the owner's all."""

import asyncio
from typing import Any

import pytest

from hermes_agent.core.chat import Conversation, Inbound, Principal, Standing
from hermes_agent.core.messages import Origin, Text
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Hang
from tests.api.served import GUEST_KEY, MEMBER_KEY, OTHER_KEY, OWNER_KEY, Server, served, until
from tests.app.place import counting


async def test_a_session_is_read_renamed_copied_and_removed(tmp_path):
    async with served(tmp_path, counting) as server:
        session = (await server.chat("A word about herons")).headers["x-hermes-session-id"]
        path = f"/v1/sessions/{session}"
        said = (await server.ask("GET", f"{path}/messages")).json()["data"]
        renamed = (await server.ask("PATCH", path, {"title": "Birds"})).json()
        copied = await server.ask("POST", f"{path}/branch", {"title": "More birds"})
        events = (await server.ask("GET", f"{path}/events?limit=2")).json()
        rest = (await server.ask("GET", f"{path}/events?after={events['last']}")).json()
        none = (await server.ask("GET", f"{path}/events?after=9999")).json()

        assert [(each["role"], each["text"]) for each in said] == [
            ("user", "A word about herons"),
            ("assistant", "Reply 1."),
        ]
        assert renamed["title"] == "Birds"
        assert (copied.status_code, copied.json()["parent"]) == (201, session)
        assert [event["number"] for event in events["data"]] == [1, 2]
        assert rest["data"][0]["number"] == 3
        assert (none["data"], none["last"]) == ([], 9999)
        assert (await server.ask("DELETE", path)).json() == {"id": session, "deleted": True}
        assert (await server.ask("GET", path)).status_code == 404


async def test_removing_a_session_ends_its_run(tmp_path):
    async with served(tmp_path, [Hang()]) as server:
        begun = (await server.ask("POST", "/v1/runs", {"input": "Hi"})).json()
        await until(server, begun["id"], "running")
        assert (await server.ask("DELETE", f"/v1/sessions/{begun['session']}")).status_code == 200
        assert not server.runtime.hermes.runs(begun["session"])


async def test_whoever_waits_in_a_session_that_is_removed_is_told_and_a_repeated_request_too(tmp_path):
    once = {"idempotency-key": "one"}
    async with served(tmp_path, [Hang(), Say("x")]) as server:
        first = (await server.ask("POST", "/v1/runs", {"input": "Hi"}, headers=once)).json()
        await until(server, first["id"], "running")
        queued = {"input": "And?", "session": first["session"], "busy": "queue"}
        second = (await server.ask("POST", "/v1/runs", queued)).json()
        waiting = asyncio.ensure_future(server.ask("GET", f"/v1/runs/{second['id']}/events"))
        await server.ask("DELETE", f"/v1/sessions/{first['session']}")
        async with asyncio.timeout(10):
            events = await waiting
            again = await server.chat("Hi", headers=once)

        assert events.status_code == 200
        assert "replied" not in events.text
        assert (again.status_code, again.json()["error"]["code"]) == (404, "session_not_found")


async def test_what_was_said_is_read_page_by_page(tmp_path):
    async with served(tmp_path, counting) as server:
        session = (await server.chat("Hi")).headers["x-hermes-session-id"]
        said, last = [], -1
        while last != (last := (page := await messages(server, session, max(last, 0)))["last"]):
            said += [each["text"] for each in page["data"]]

    assert said == ["Hi", "Reply 1."]


async def messages(server: Server, session: str, after: int) -> dict[str, Any]:
    """One page of what was said, so small that there is nothing in most."""
    answer = await server.ask("GET", f"/v1/sessions/{session}/messages?limit=1&after={after}")
    return answer.json()


async def test_pages_of_sessions_follow_one_another(tmp_path):
    async with served(tmp_path, counting) as server:
        made = [(await server.chat(f"Number {number}")).headers["x-hermes-session-id"] for number in range(3)]
        first = (await server.ask("GET", "/v1/sessions?limit=2")).json()
        second = (await server.ask("GET", f"/v1/sessions?limit=2&before={first['next']}")).json()

        assert {each["id"] for each in first["data"] + second["data"]} == set(made)
        assert second["next"] is None


async def test_search_finds_what_was_said(tmp_path):
    async with served(tmp_path, counting) as server:
        await server.chat("A word about herons")
        hits = (await server.ask("GET", "/v1/search?q=herons")).json()["data"]

        assert "herons" in hits[0]["snippet"]
        for query in ("?q=", "?q=%20", "", "?q=x&limit=0"):
            assert (await server.ask("GET", f"/v1/search{query}")).status_code == 400


KEYS = {"owner": OWNER_KEY, "anna": MEMBER_KEY, "bert": OTHER_KEY, "gast": GUEST_KEY}


@pytest.mark.parametrize("reader", KEYS)
async def test_nobody_reaches_another_person_s_session_but_the_owner(tmp_path, reader):
    """Every person's session against every endpoint that names one."""
    async with served(tmp_path, counting) as server:
        made = {}
        for name, key in KEYS.items():
            answer = await server.chat(f"The secret of {name} is plum", key=key)
            made[name] = (answer.headers["x-hermes-session-id"], answer.headers["x-hermes-run-id"])
        key = KEYS[reader]
        for name, (session, run) in made.items():
            sees = name == reader or reader == "owner"
            response = run.replace("run_", "resp_")
            asked = {
                ("GET", f"/v1/sessions/{session}"): (None, 200),
                ("GET", f"/v1/sessions/{session}/messages"): (None, 200),
                ("GET", f"/v1/sessions/{session}/events"): (None, 200),
                ("PATCH", f"/v1/sessions/{session}"): ({"title": "x"}, 200),
                ("POST", f"/v1/sessions/{session}/branch"): ({}, 201),
                ("GET", f"/v1/sessions?before={session}"): (None, 200),
                ("GET", f"/v1/runs/{run}"): (None, 200),
                ("GET", f"/v1/runs/{run}/events"): (None, 200),
                ("POST", f"/v1/runs/{run}/answer"): ({"answer": "yes"}, 409),
                ("POST", f"/v1/runs/{run}/stop"): (None, 200),
                ("GET", f"/v1/responses/{response}"): (None, 200),
                ("POST", f"/v1/responses/{response}/cancel"): (None, 200),
                ("POST", "/v1/runs"): ({"input": "Hi", "session": session}, 202),
                ("DELETE", f"/v1/responses/{response}"): (None, 409),
                ("DELETE", f"/v1/sessions/{session}"): (None, 200),
            }
            for (method, path), (body, status) in asked.items():
                found = await server.ask(method, path, body, key=key)
                assert found.status_code == (status if sees else 404), (method, path, name)
        listed = {each["principal"] for each in (await server.ask("GET", "/v1/sessions", key=key)).json()["data"]}
        found = (await server.ask("GET", "/v1/search?q=plum", key=key)).json()["data"]

        assert listed <= ({f"api:{reader}"} if reader != "owner" else {f"api:{name}" for name in KEYS})
        assert all(reader in hit["snippet"] for hit in found) or reader == "owner"


@pytest.mark.parametrize("name", KEYS)
async def test_what_two_people_of_one_group_say_and_are_asked_is_theirs_also_over_the_api(tmp_path, name):
    """Each has a private session and one in the group, and is asked something there."""
    ask = Call("clarify", {"question": "May I?", "choices": ["yes", "no"]})
    async with served(tmp_path, lambda heard: ask) as server:
        key, made = KEYS[name], {}
        for user in ("anna", "bert"):
            for kind, chat in (("group", "-7"), ("dm", user)):
                made[user, kind] = await told_in(server, kind, chat, user, str(tmp_path))
        asked = {
            ("GET", "/v1/sessions/{session}"): None,
            ("GET", "/v1/sessions/{session}/messages"): None,
            ("GET", "/v1/sessions/{session}/events"): None,
            ("GET", "/v1/runs/{run}"): None,
            ("GET", "/v1/responses/resp{rest}"): None,
            ("POST", "/v1/runs/{run}/answer"): {"answer": "yes"},
            ("POST", "/v1/sessions/{session}/branch"): {},
            ("POST", "/v1/runs/{run}/stop"): None,
        }
        found = set()
        for session, run in made.values():
            for (method, path), body in asked.items():
                place = path.format(session=session, run=run, rest=run.removeprefix("run"))
                found.add((await server.ask(method, place, body, key=key)).status_code < 400)
        listed = {each["id"] for each in (await server.ask("GET", "/v1/sessions", key=key)).json()["data"]}
        hits = {each["session"] for each in (await server.ask("GET", "/v1/search?q=plum", key=key)).json()["data"]}
        theirs = {session for session, _ in made.values()}

    assert len(theirs) == 4
    assert found == {name == "owner"}
    assert listed >= theirs if name == "owner" else not listed & theirs
    assert hits >= theirs if name == "owner" else not hits


async def told_in(server: Server, kind: str, chat: str, user: str, workspace: str) -> tuple[str, str]:
    """The session and the run of a message that somebody wrote on a chat platform, once the run asks them."""
    group = {"participant": user} if kind == "group" else {}
    who = Principal(platform="telegram", user=user, standing=Standing.MEMBER)
    said = Inbound(
        source="telegram",
        source_id=f"{kind}{user}",
        principal=who,
        conversation=Conversation(platform="telegram", chat_kind=kind, chat=chat, **group),
        parts=(Text(text=f"The plum of {user} is {kind}", origin=Origin.MEMBER),),
        received=server.runtime.clock.now(),
    )
    begun = await server.runtime.hermes.start_session(said, workspace=workspace)
    run = f"run_{begun.session}_{begun.inbox}"
    await until(server, run, "waiting")
    return begun.session, run


async def test_a_guest_has_fewer_tools_and_sees_no_skills(tmp_path):
    async with served(tmp_path, [Say("Hi."), Say("Hi.")]) as server:
        await server.chat("Hi", key=MEMBER_KEY)
        await server.chat("Hi", key=GUEST_KEY)
        offered = [{tool["function"]["name"] for tool in each.body["tools"]} for each in server.model.exchanges]

        assert "terminal" in offered[0]
        assert not offered[1] & {"terminal", "read_file", "write_file", "web_extract"}
        assert (await server.ask("GET", "/v1/skills", key=GUEST_KEY)).json()["data"] == []
        assert (await server.ask("GET", "/v1/skills", key=MEMBER_KEY)).json()["data"] != []


async def test_only_the_owner_answers_for_others(tmp_path):
    async with served(tmp_path, [Call("clarify", {"question": "Which?"}), Say("Thanks.")]) as server:
        run = (await server.ask("POST", "/v1/runs", {"input": "Hi"}, key=MEMBER_KEY)).json()["id"]
        await until(server, run, "waiting")
        assert (await server.ask("POST", f"/v1/runs/{run}/answer", {"answer": "a"}, key=OTHER_KEY)).status_code == 404
        assert (await server.ask("POST", f"/v1/runs/{run}/answer", {"answer": "a"})).status_code == 200
        assert (await until(server, run, "answered"))["text"] == "Thanks."
