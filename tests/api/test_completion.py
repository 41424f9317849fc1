"""What chat completions, responses and runs share: which message is to be said, and where."""

import asyncio
import base64
from types import MappingProxyType

import pytest

from hermes_agent.agent.loop import STILL_CUT
from hermes_agent.api.completion import LONGEST_HEADER, NAME, ONCE, SESSION, system_of, wish_of
from hermes_agent.api.endpoint import Call, Nothing
from hermes_agent.api.requests import Said
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.events import MessageTaken, Pinned
from hermes_agent.core.messages import StopReason
from hermes_agent.host.inbound.message import Refused
from hermes_agent.providers.demo.script import Answer, Call as ToolCall, Say
from hermes_agent.testing.faults import Hang, Status
from tests.api.served import MEMBER_KEY, lines, served, until
from tests.app.place import counting

WHO = Principal(platform="api", user="anna", standing=Standing.MEMBER)
HI = Said(role="user", content="Hi")


def call(**headers: str) -> Call[Nothing, Nothing]:
    return Call(who=WHO, path={}, query=Nothing(), body=Nothing(), headers=headers, left=asyncio.Event())


def test_the_last_message_is_said_and_those_before_it_are_history():
    said = [Said(role="system", content="Be brief."), HI, Said(role="assistant", content="Yes?"), HI]
    wish = wish_of(call(), said, "messages", instructions=system_of(said))
    assert (wish.words, len(wish.history), wish.instructions) == ("Hi", 2, "Be brief.")


def test_headers_name_the_session_and_the_body_goes_before_them():
    headers = MappingProxyType({SESSION: "s", NAME: "n", ONCE: "o"})
    wish = wish_of(call(**headers), [HI], "input", session="other")
    assert (wish.session, wish.name, wish.once) == ("other", "n", "o")


@pytest.mark.parametrize(
    "said",
    [
        [],
        [Said(role="system", content="x")],
        [Said(role="user", content=" ")],
        [HI, Said(role="assistant", content="x")],
        [Said(role="tool", content="x"), HI],
    ],
)
def test_what_ends_with_no_word_of_the_user_is_refused(said):
    with pytest.raises(Refused) as refused:
        wish_of(call(), said, "messages")
    assert (refused.value.status, refused.value.param) == (400, "messages")


def test_a_header_that_is_too_long_is_refused():
    with pytest.raises(Refused, match="too long"):
        wish_of(call(**{ONCE: "x" * (LONGEST_HEADER + 1)}), [HI], "input")


ASK = ToolCall("clarify", {"question": "Which one?", "choices": ["a", "b"]})


async def test_a_reply_is_whole_and_says_its_run_and_tokens(tmp_path):
    async with served(tmp_path, [Say("Hello.")]) as server:
        answer = await server.chat("Hi")
        body = answer.json()

    assert body["choices"][0] == {
        "message": {"content": "Hello.", "role": "assistant", "refusal": None},
        "finish_reason": "stop",
        "index": 0,
        "logprobs": None,
    }
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"] > 0
    assert body["hermes"]["status"] == "answered"
    assert answer.headers["x-hermes-session-id"] == body["hermes"]["session"]
    assert answer.headers["x-hermes-run-id"] == body["hermes"]["id"]


async def test_tools_are_used_inside_and_never_shown(tmp_path):
    script = [[Say("I look."), ToolCall("todo", {})], Say("Done.")]
    async with served(tmp_path, script) as server:
        whole = (await server.chat("Go")).json()
        assert whole["choices"][0]["message"]["content"] == "Done."
        assert "todo" not in str(whole)


async def test_a_stream_has_the_words_of_every_turn_and_ends(tmp_path):
    script = [[Say("I look."), ToolCall("todo", {})], Say("Done.")]
    async with served(tmp_path, script) as server:
        answer = await server.chat("Go", stream=True, stream_options={"include_usage": True})
        events = lines(answer.text)

    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text.endswith("data: [DONE]\n\n")
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    words = "".join(choice["delta"].get("content", "") for event in events for choice in event["choices"])
    assert words == "I look.\n\nDone."
    assert events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"]["total_tokens"] > 0


async def test_a_client_that_tells_what_was_said_goes_on_in_its_own_session(tmp_path):
    async with served(tmp_path, counting) as server:
        first = (await server.chat("Hi")).json()
        reply = first["choices"][0]["message"]["content"]
        second = (await server.chat("Hi", reply, "More")).json()
        third = (await server.chat("Hi", reply, "More", "Reply 2.", "And more", stream=True)).headers

        assert first["hermes"]["session"] == second["hermes"]["session"] == third["x-hermes-session-id"]
        assert second["choices"][0]["message"]["content"] == "Reply 2."


async def test_another_past_makes_another_session_that_begins_with_it(tmp_path):
    async with served(tmp_path, counting) as server:
        first = (await server.chat("Hi")).json()
        other = (await server.chat("Hi", "I never said that.", "More")).json()

        assert first["hermes"]["session"] != other["hermes"]["session"]
        told = [(message["role"], message["content"]) for message in server.model.exchanges[-1].body["messages"]]
        assert ("assistant", "I never said that.") in told
        assert other["choices"][0]["message"]["content"] == "Reply 2."
        again = (await server.chat("Hi", "I never said that.", "More", "Reply 2.", "Still there?")).json()
        assert again["hermes"]["session"] == other["hermes"]["session"]


async def test_nobody_goes_on_in_another_person_s_session(tmp_path):
    async with served(tmp_path, counting) as server:
        first = (await server.chat("Hi")).json()
        other = (await server.chat("Hi", "Reply 1.", "More", key=MEMBER_KEY)).json()

        assert first["hermes"]["session"] != other["hermes"]["session"]


async def test_a_session_is_gone_on_with_by_its_header_or_by_a_name(tmp_path):
    async with served(tmp_path, counting) as server:
        first = await server.chat("Hi")
        session = first.headers["x-hermes-session-id"]
        again = await server.chat("More", headers={"x-hermes-session-id": session})
        named = [await server.chat(text, headers={"x-hermes-session-key": "mine"}) for text in ("One", "Two")]

        assert again.headers["x-hermes-session-id"] == session
        assert again.json()["choices"][0]["message"]["content"] == "Reply 2."
        assert len({each.headers["x-hermes-session-id"] for each in named} | {session}) == 2
        unknown = await server.chat("Hi", headers={"x-hermes-session-id": "20260101_000000_abcdef"})
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "session_not_found")
        long = await server.chat("Hi", headers={"x-hermes-session-key": "x" * 300})
        assert long.status_code == 400


async def test_a_system_message_is_pinned_once_and_again_where_it_changes(tmp_path):
    async with served(tmp_path, counting) as server:
        headers = {"x-hermes-session-key": "mine"}
        for rule, words in (("Be brief.", "One"), ("Be brief.", "Two"), ("Be long.", "Three")):
            said = [{"role": "system", "content": rule}, {"role": "user", "content": words}]
            answer = await server.ask("POST", "/v1/chat/completions", {"messages": said}, headers=headers)
        entries = await server.log(answer.json()["hermes"]["session"])

        assert [entry.event.text for entry in entries if isinstance(entry.event, Pinned)] == ["Be brief.", "Be long."]
        assert "Be brief." in str(server.model.exchanges[0].body["messages"])


async def test_a_repeated_request_with_its_key_counts_once(tmp_path):
    async with served(tmp_path, counting) as server:
        headers = {"idempotency-key": "order-7"}
        first = (await server.chat("Hi", headers=headers)).json()
        second = (await server.chat("Hi", headers=headers)).json()
        other = (await server.chat("Hi", headers=headers, key=MEMBER_KEY)).json()

        assert first["id"] == second["id"] != other["id"]
        assert len(server.model.exchanges) == 2


async def test_a_key_stands_for_one_request_alone(tmp_path):
    """Another one under it is refused, at each address; the same one may be asked for in another way."""
    async with served(tmp_path, counting) as server:
        for path, said, more in (
            ("/v1/chat/completions", lambda text: {"messages": [{"role": "user", "content": text}]}, "model"),
            ("/v1/responses", lambda text: {"input": text}, "instructions"),
            ("/v1/runs", lambda text: {"input": text}, "instructions"),
        ):
            headers = {"idempotency-key": path}
            first = await server.ask("POST", path, said("Hi"), headers=headers)
            again = await server.ask("POST", path, {**said("Hi"), "stream": True}, headers=headers)
            others = [
                await server.ask("POST", path, said("Hello"), headers=headers),
                await server.ask("POST", path, {**said("Hi"), more: "custom/x"}, headers=headers),
                await server.ask("POST", path, said("Hi"), headers={**headers, "x-hermes-session-key": "mine"}),
            ]
            assert first.headers["x-hermes-run-id"] == again.headers["x-hermes-run-id"]
            for each in others:
                assert (each.status_code, each.json()["error"]["code"]) == (422, "idempotency_key_reused")
        async with asyncio.TaskGroup() as group:
            texts = ("One", "Two", "One")
            asked = [group.create_task(server.chat(text, headers={"idempotency-key": "k"})) for text in texts]
    found = [each.result().status_code for each in asked]
    assert sorted(found) in ([200, 200, 422], [200, 422, 422])
    assert found[0] == found[2]


async def test_a_repeated_request_whose_question_was_answered_gets_the_reply(tmp_path):
    async with served(tmp_path, [ASK, Say("Thanks.")]) as server:
        headers = {"idempotency-key": "order-8"}
        first = (await server.chat("Hi", headers=headers)).json()
        asked = (await server.chat("Hi", headers=headers)).json()
        run = first["hermes"]["id"]
        await server.ask("POST", f"/v1/runs/{run}/answer", {"answer": "a"})
        await until(server, run, "answered")
        again = (await server.chat("Hi", headers=headers)).json()

    assert asked["hermes"]["status"] == "waiting"
    assert again["choices"][0]["message"]["content"] == "Thanks."


async def test_images_and_files_reach_the_log(tmp_path):
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,aGk=", "filename": "a.txt"}},
    ]
    async with served(tmp_path, [Say("A greeting.")]) as server:
        answer = await server.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]})
        entries = await server.log(answer.json()["hermes"]["session"])

    (taken,) = [entry.event for entry in entries if isinstance(entry.event, MessageTaken)]
    assert [part.kind for part in taken.message.parts] == ["text", "image", "file"]


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}, {"role": "user", "content": "Hi"}]}, "messages"),
        ({"messages": [{"role": "user", "content": None}]}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "image_url"),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "messages[0].content[0].type"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
async def test_what_cannot_be_meant_is_refused_with_a_sentence(tmp_path, more, param):
    async with served(tmp_path, counting) as server:
        body = {"messages": [{"role": "user", "content": "Hi"}], **more}
        answer = await server.ask("POST", "/v1/chat/completions", body)

        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == param
        assert answer.json()["error"]["message"].endswith((".", "`"))
        assert server.model.exchanges == []


async def test_an_answer_names_the_model_that_made_it(tmp_path):
    """Whatever name it was asked for by, at each address, whole, streamed and told again."""
    async with served(tmp_path, counting) as server:
        for asked, answers in (("", "custom/m"), ("hermes", "custom/m"), ("x", "custom/x"), ("custom/x", "custom/x")):
            whole = (await server.chat("Hi", model=asked)).json()
            assert (whole["model"], whole["hermes"]["model"]) == (answers, answers)
            body = {"input": "Hi", "model": asked}
            response = (await server.ask("POST", "/v1/responses", body)).json()
            kept = (await server.ask("GET", f"/v1/responses/{response['id']}")).json()
            begun = (await server.ask("POST", "/v1/responses", {**body, "background": True})).json()
            chunks = lines((await server.chat("Hi", model=asked, stream=True)).text)
            events = lines((await server.ask("POST", "/v1/responses", {**body, "stream": True})).text)
            told = {each["response"]["model"] for each in events if "response" in each}
            assert {response["model"], kept["model"], begun["model"]} == {answers}
            assert {each["model"] for each in chunks} == told == {answers}


async def test_an_answer_names_the_model_that_stood_in(tmp_path):
    more = "  max_retries: 0\n  fallbacks: [custom/second]\n"
    async with served(tmp_path, lambda heard: Status(503) if heard.model == "m" else Say("Hi."), more=more) as server:
        assert (await server.chat("Hi")).json()["model"] == "custom/second"


async def test_the_owner_may_choose_a_model_and_others_may_not(tmp_path):
    async with served(tmp_path, counting) as server:
        assert (await server.chat("Hi", model="custom/m")).status_code == 200
        assert (await server.chat("Hi", model="hermes", key=MEMBER_KEY)).status_code == 200
        refused = await server.chat("Hi", model="custom/m", key=MEMBER_KEY)
        unknown = await server.chat("Hi", model="anthropic/claude-x")

        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")


async def test_a_run_that_fails_is_an_error_whole_and_streamed(tmp_path):
    async with served(tmp_path, [Status(401)] * 2) as server:
        whole = await server.chat("Hi")
        streamed = lines((await server.chat("Hi", stream=True)).text)

        assert whole.status_code == 502
        assert whole.headers["x-should-retry"] == "false"
        assert whole.json()["error"]["code"] == streamed[-1]["error"]["code"] == "provider_failed"


async def test_a_limit_ends_a_completion_as_cut(tmp_path):
    script = [ToolCall("todo", {}), Say("So far.")]
    async with served(tmp_path, script, more="agent:\n  max_turns: 1\n") as server:
        choice = (await server.chat("Go")).json()["choices"][0]

        assert choice["finish_reason"] == "length"
        assert "turn limit" in choice["message"]["content"]


async def test_what_is_asked_is_answered_with_the_question_and_the_run_waits(tmp_path):
    script = [ToolCall("clarify", {"question": "Which one?", "choices": ["a", "b"]}), Say("Thanks.")]
    async with served(tmp_path, script) as server:
        answer = await server.chat("Go", stream=True)
        words = "".join(c["delta"].get("content", "") for e in lines(answer.text) for c in e["choices"])
        run, session = answer.headers["x-hermes-run-id"], answer.headers["x-hermes-session-id"]

        assert words.startswith("Which one?")
        assert run in words
        waits = await server.chat("Hello?", headers={"x-hermes-session-id": session})
        assert (waits.status_code, waits.json()["error"]["code"]) == (409, "waiting_for_answer")
        assert (await server.ask("POST", f"/v1/runs/{run}/answer", {"answer": "a"})).json()["status"] == "running"


async def test_too_many_at_once_are_told_to_come_later(tmp_path):
    async with served(tmp_path, [Hang()], api="  max_waiting: 1\n") as server, asyncio.TaskGroup() as group:
        waiting = group.create_task(server.chat("Hi"))
        while not server.model.exchanges:
            await asyncio.sleep(0.01)
        refused = await server.chat("Hi", stream=True)
        session = (await server.ask("GET", "/v1/sessions")).json()["data"][0]["id"]
        await server.runtime.hermes.stop(session)

        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert (await waiting).json()["hermes"]["status"] == "stopped"


def pictured(picture: bytes) -> dict[str, object]:
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    return {"role": "user", "content": content}


async def test_the_same_words_about_another_picture_are_another_conversation(tmp_path):
    def told(picture: bytes, *more: str) -> dict[str, object]:
        said = [pictured(picture)]
        said += [{"role": ("assistant", "user")[index % 2], "content": text} for index, text in enumerate(more)]
        return {"messages": said}

    async with served(tmp_path, [Say("A bird.")] * 4) as server:
        one, other, goes_on, apart = [
            (await server.ask("POST", "/v1/chat/completions", body)).json()["hermes"]["session"]
            for body in (told(b"one"), told(b"other"), told(b"other", "A bird.", "More?"), told(b"one", "A bird.", "?"))
        ]

    assert goes_on == other
    assert apart not in (one, other)


async def test_a_reply_that_stays_cut_is_cut_for_the_client_too(tmp_path):
    """Its own model reached its length limit again and again."""
    pieces = [Answer(pieces=(Say(f"part {number}, "),), stop=StopReason.LENGTH) for number in range(8)]
    async with served(tmp_path, pieces) as server:
        choice = (await server.chat("Sing")).json()["choices"][0]
        streamed = lines((await server.chat("Sing", stream=True)).text)

        assert choice["finish_reason"] == "length"
        assert "length" in [each["choices"][0]["finish_reason"] for each in streamed if each["choices"]]
        assert choice["message"]["content"] == f"part 0, part 1, part 2, part 3, \n\n{STILL_CUT}"
