"""Responses: where they go on, what they refuse, and how they are stopped."""

import asyncio

import pytest

from hermes_agent.api.requests import Said
from hermes_agent.api.service import AgentService, Wish, _place
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.events import MessageTaken
from hermes_agent.core.messages import Text
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.inbox import Ending
from hermes_agent.testing.faults import Hang, Status
from tests.api.served import MEMBER_KEY, lines, served, until
from tests.api.test_runs import waiting_for_nobody
from tests.app.place import counting

ASK = Call("clarify", {"question": "Which one?", "choices": ["a", "b"]})


async def test_what_was_said_before_may_be_told(tmp_path):
    said = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "And?"}]},
    ]
    async with served(tmp_path, counting) as server:
        answer = (await server.ask("POST", "/v1/responses", {"input": said, "metadata": {"a": "b"}})).json()

    assert answer["output"][0]["content"][0]["text"] == "Reply 2."
    assert answer["metadata"] == {"a": "b"}


@pytest.mark.parametrize(
    "body",
    [
        {"input": "Hi", "tools": [{"type": "web_search"}]},
        {"input": "Hi", "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}},
        {"input": "Hi", "conversation": "conv_1"},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,abc"}]}]},
        {"input": [{"type": "function_call_output"}]},
        {"input": [{"role": "assistant", "content": "Hi"}]},
        {"input": []},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": "x"}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "ftp://x"}]}]},
        {
            "input": [{"content": "a"}, {"role": "assistant", "content": "b"}, {"content": "c"}],
            "previous_response_id": "resp_20260101_000000_abcdef_9",
        },
    ],
)
async def test_what_cannot_be_meant_is_refused(tmp_path, body):
    async with served(tmp_path, counting) as server:
        assert (await server.ask("POST", "/v1/responses", body)).status_code == 400


async def test_a_failure_is_told_in_the_object_and_the_stream(tmp_path):
    async with served(tmp_path, [Status(401)] * 2) as server:
        whole = (await server.ask("POST", "/v1/responses", {"input": "Hi"})).json()
        events = lines((await server.ask("POST", "/v1/responses", {"input": "Hi", "stream": True})).text)

    assert (whole["status"], whole["error"]["code"]) == ("failed", "provider_failed")
    assert events[-1]["type"] == "response.failed"


async def test_a_limit_leaves_a_response_incomplete(tmp_path):
    script = [Call("todo", {}), Say("So far.")] * 2
    async with served(tmp_path, script, more="agent:\n  max_turns: 1\n") as server:
        whole = (await server.ask("POST", "/v1/responses", {"input": "Hi"})).json()

    assert (whole["status"], whole["incomplete_details"]) == ("incomplete", {"reason": "turn limit"})


async def test_a_question_is_the_answer_until_it_is_answered(tmp_path):
    async with served(tmp_path, [ASK, Say("Thanks.")]) as server:
        whole = (await server.ask("POST", "/v1/responses", {"input": "Hi"})).json()
        early = await server.ask("POST", "/v1/responses", {"input": "Hi", "previous_response_id": whole["id"]})
        await server.ask("POST", f"/v1/runs/{whole['hermes']['id']}/answer", {"answer": "a"})
        await until(server, whole["hermes"]["id"], "answered")
        later = (await server.ask("GET", f"/v1/responses/{whole['id']}")).json()

        assert whole["output"][0]["content"][0]["text"].startswith("Which one? (a, b)")
        assert early.status_code == 409
        assert later["output"][0]["content"][0]["text"] == "Thanks."


async def test_a_response_under_way_is_cancelled(tmp_path):
    async with served(tmp_path, [Hang()]) as server:
        begun = (await server.ask("POST", "/v1/responses", {"input": "Hi", "background": True})).json()
        await until(server, begun["hermes"]["id"], "running")
        stopped = (await server.ask("POST", f"/v1/responses/{begun['id']}/cancel")).json()
        again = (await server.ask("POST", f"/v1/responses/{begun['id']}/cancel")).json()

        assert (begun["status"], stopped["status"], again["status"]) == ("queued", "cancelled", "cancelled")


async def test_an_answer_to_which_its_run_came_later_is_kept(tmp_path):
    async with served(tmp_path, [ASK, Say("Thanks.")]) as server:
        first = (await server.ask("POST", "/v1/responses", {"input": "Hi"})).json()
        await server.ask("POST", f"/v1/runs/{first['hermes']['id']}/answer", {"answer": "a"})
        await until(server, first["hermes"]["id"], "answered")
        whole = (await server.ask("GET", f"/v1/responses/{first['id']}")).json()

    assert (whole["status"], whole["output"][0]["content"][0]["text"]) == ("completed", "Thanks.")
    assert abs(whole["created_at"] - first["created_at"]) <= 2


async def test_a_conversation_stays_in_its_session_also_behind_a_response_in_the_background(tmp_path):
    async with served(tmp_path, counting) as server:
        said = [{"role": "user", "content": "Hi"}]
        found = []
        for words in ("And?", "And then?", "And last?"):
            begun = (await server.ask("POST", "/v1/responses", {"input": said, "background": True})).json()
            over = await until(server, begun["hermes"]["id"], "answered")
            found.append(over["session"])
            said += [{"role": "assistant", "content": over["text"]}, {"role": "user", "content": words}]

    assert len(set(found)) == 1


async def test_answers_that_go_on_from_the_same_one_at_once_know_nothing_of_each_other(tmp_path):
    async with served(tmp_path, counting) as server:
        first = (await server.ask("POST", "/v1/responses", {"input": "Hi"})).json()
        more = [
            asyncio.ensure_future(
                server.ask("POST", "/v1/responses", {"input": f"Way {way}", "previous_response_id": first["id"]})
            )
            for way in range(3)
        ]
        sessions = [(await each).json()["hermes"]["session"] for each in more]
        said = [
            [entry.event.message.text for entry in await server.log(session) if isinstance(entry.event, MessageTaken)]
            for session in sessions
        ]

    assert len(set(sessions)) == 3
    assert sorted(said) == [["Hi", f"Way {way}"] for way in range(3)]


async def test_nothing_goes_on_from_what_no_run_took(tmp_path):
    async with served(tmp_path, counting) as server:
        session, row = await waiting_for_nobody(server, tmp_path)
        store, wish = server.runtime.store, {"input": "On", "previous_response_id": f"resp_{session}_{row}"}
        early = await server.ask("POST", "/v1/responses", wish, key=MEMBER_KEY)
        lease = await store.lanes.claim(("nobody's",))
        await store.write(lambda tx: store.inbox.finish(tx, lease, [row], Ending.REFUSED, reason="Given up."))
        late = await server.ask("POST", "/v1/responses", wish, key=MEMBER_KEY)

    assert (early.status_code, early.json()["error"]["code"]) == (409, "not_over")
    assert (late.status_code, late.json()["error"]["code"]) == (404, "previous_response_not_found")
    assert "Given up." in late.json()["error"]["message"]


async def test_two_processes_that_begin_a_named_session_at_once_tell_its_past_once(tmp_path):
    who = Principal(platform="api", user="owner", standing=Standing.OWNER)
    past = (Said(role="user", content="Hi"), Said(role="assistant", content="Hello."))
    async with served(tmp_path, counting) as server:
        wish = Wish(who=who, parts=(Text(text="On"),), words="On", name="ours", history=past)
        talk = AgentService(server.runtime)
        first = await talk.say(wish)
        await until(server, first.ref.id(), "answered")
        late = await talk._opened(wish, _place(wish))  # As whoever looked for it before it was there.
        entries = await server.log(first.ref.session)

    assert late.id == first.ref.session
    assert [each.event.message.text for each in entries if isinstance(each.event, MessageTaken)] == ["Hi", "On"]
