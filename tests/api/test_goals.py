"""Goals over HTTP: everybody's own, the owner's all."""

import asyncio

from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.api.served import GUEST_KEY, MEMBER_KEY, Server, served

NEVER = [{"kind": "command", "text": "exit 1"}]


def works(heard: Heard) -> Call | Say:
    if "Hello" in heard.last.text:
        return Say("Hello.")
    writes = Call("write_file", {"path": "done.txt", "content": "yes"})
    return writes if heard.last.role == "user" else Say("Done.")


async def stands(server: Server, name: str) -> dict:
    """The goal, when nothing goes on any more."""
    async with asyncio.timeout(20):
        while True:
            found = (await server.ask("GET", f"/v1/goals/{name}")).json()
            if found["state"] not in ("active", "checking"):
                return found
            await asyncio.sleep(0.05)


async def test_a_goal_is_set_pursued_by_the_server_and_done(tmp_path):
    async with served(tmp_path, works) as server:
        session = (await server.chat("Hello")).headers["x-hermes-session-id"]
        wish = {"text": "Have it.", "session": session, "criteria": [{"kind": "file", "text": "done.txt"}]}
        begun = await server.ask("POST", "/v1/goals", wish)
        done = await stands(server, begun.json()["id"])
        listed = (await server.ask("GET", "/v1/goals")).json()["data"]
        ended = (await server.ask("GET", "/v1/goals?ended=true")).json()["data"]

    assert (begun.status_code, begun.json()["state"]) == (201, "active")
    assert (done["state"], done["met"], done["checks"][0]["verdict"]) == ("done", True, "met")
    assert listed == []
    assert [each["id"] for each in ended] == [done["id"]]


async def test_a_goal_without_a_session_is_written_down_checked_changed_and_ended(tmp_path):
    async with served(tmp_path, works) as server:
        goal = (await server.ask("POST", "/v1/goals", {"text": "Never.", "criteria": NEVER})).json()
        path = f"/v1/goals/{goal['id']}"
        checked = (await server.ask("POST", f"{path}/check")).json()
        homeless = await server.ask("PATCH", path, {"state": "active"})
        states = [(await server.ask("PATCH", path, {"state": state})).json() for state in ("paused", "dropped")]
        late = await server.ask("PATCH", path, {"state": "done"})

    assert goal["state"] == "draft"
    assert (checked["met"], checked["checks"][0]["exit_code"]) == (False, 1)
    assert homeless.status_code == 409
    assert [each["state"] for each in states] == ["paused", "dropped"]
    assert late.status_code == 409


async def test_goals_are_their_persons_and_guests_have_none(tmp_path):
    async with served(tmp_path, works) as server:
        goal = (await server.ask("POST", "/v1/goals", {"text": "Mine.", "criteria": NEVER})).json()
        theirs = await server.ask("GET", "/v1/goals", key=MEMBER_KEY)
        one = await server.ask("GET", f"/v1/goals/{goal['id']}", key=MEMBER_KEY)
        guest = await server.ask("GET", "/v1/goals", key=GUEST_KEY)

    assert theirs.json()["data"] == []
    assert one.status_code == 404
    assert "There is no goal" in one.text
    assert guest.status_code == 409
