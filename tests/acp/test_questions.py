"""What runs ask in the editor: permissions, forms and choices, also answered elsewhere."""

import asyncio
from pathlib import Path

import pytest
from acp import RequestError, schema

from hermes_agent.core.answers import open_in
from hermes_agent.core.events import Answered, Asked, RunEnded
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.acp.editor import Client, Json, Place, choosing, editor, opened
from tests.app.place import another, spoken

COMMAND = {"command": "git push --force origin main"}


def risky(heard: Heard) -> Json:
    return Say("Over.") if spoken(heard) else Call("terminal", COMMAND)


def asking(choices: list[str] | None) -> Json:
    arguments = {"question": "Which tea?", **({"choices": choices} if choices else {})}

    def script(heard: Heard) -> Json:
        return Say(f"So: {heard.last.parts[0].text}") if spoken(heard) else Call("clarify", arguments)

    return script


def results(place: Place, session: str) -> str:
    updates = place.client.of(session, "tool_call_update")
    return "".join(each.content.text for update in updates for each in update.content or () if each.type == "content")


@pytest.mark.parametrize(("option", "said"), [("once", ""), ("deny", "The person said no")])
async def test_a_dangerous_call_waits_for_the_permission(tmp_path: Path, option: str, said: str):
    async with editor(tmp_path, risky, Client(decide=choosing(option))) as place:
        session = await place.begin()
        ended = await place.say(session, "Go")

    assert ended.stop_reason == "end_turn"
    assert set(place.client.options[0]) >= {"once", "session", "always", "deny"}
    assert "git push --force" in place.client.asked[0].content[0].content.text
    assert place.client.asked[0].tool_call_id in {each.tool_call_id for each in place.client.of(session, "tool_call")}
    assert said in results(place, session)


async def test_a_permission_that_the_editor_calls_cancelled_ends_the_turn(tmp_path: Path):
    async with editor(tmp_path, risky, Client(decide=lambda *_: None)) as place:
        session = await place.begin()
        ended = await asyncio.wait_for(place.say(session, "Go"), 4)

    assert ended.stop_reason == "cancelled"


async def test_a_cancel_while_the_permission_is_open_ends_the_turn(tmp_path: Path):
    client = Client(hold=asyncio.Event())
    async with editor(tmp_path, risky, client) as place:
        session = await place.begin()
        prompt = asyncio.create_task(place.say(session, "Go"))
        await client.until(lambda: client.asked)
        await place.agent.cancel(session_id=session)
        ended = await asyncio.wait_for(prompt, 2)
        client.hold.set()

    assert ended.stop_reason == "cancelled"


async def test_a_permission_that_is_answered_elsewhere_is_withdrawn_and_counts_once(tmp_path: Path):
    client, sent = Client(hold=asyncio.Event()), list[Json]()
    async with editor(tmp_path, risky, client) as place:
        place.agent._conn.add_observer(lambda event: sent.append(event.message))
        session = await place.begin()
        prompt = asyncio.create_task(place.say(session, "Go"))
        await client.until(lambda: client.asked)
        home = place.home
        async with another(_home(home), place.server) as terminal:
            pages = terminal.runtime.store.history.since_last_end(session)
            (question,) = open_in([entry async for page in pages for entry in page])
            answer = terminal.inbound("deny", answers=question.asked.question)
            await terminal.runtime.hermes.submit(answer, session)
            ended = await asyncio.wait_for(prompt, 10)
            client.hold.set()
            await asyncio.sleep(0.1)
            entries = await terminal.runtime.store.history.entries(session)

    withdrawn = [each for each in sent if each.get("method") == "$/cancel_request"]
    asked = [each for each in sent if each.get("method") == "session/request_permission"]
    assert ended.stop_reason == "end_turn"
    assert [each["params"]["requestId"] for each in withdrawn] == [asked[0]["id"]]
    assert sum(isinstance(each.event, Answered) for each in entries) == 1


def _home(root: Path) -> Json:
    return Home(root=root, base=root)


async def test_an_open_permission_is_asked_again_after_the_agent_was_lost(tmp_path: Path):
    client = Client(hold=asyncio.Event())
    async with editor(tmp_path, risky, client, process=True) as place:
        session = await place.begin()
        prompt = asyncio.create_task(place.say(session, "Go"))
        await client.until(lambda: client.asked)
        place.process.kill()
        prompt.cancel()
        again = Client(decide=choosing("deny"))
        async with opened(place.home, place.work, again, place.server) as second:
            await second.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])
            await again.until(lambda: "Over." in again.text(session), 15)
        client.hold.set()

    assert len(again.asked) == 1


async def test_an_open_permission_is_the_same_question_after_a_kill_in_another_environment(tmp_path: Path):
    client, again = Client(hold=asyncio.Event()), Client(hold=asyncio.Event())
    async with editor(tmp_path, risky, client, process=True) as place:
        session = await place.begin()
        prompt = asyncio.create_task(place.say(session, "Go"))
        await client.until(lambda: client.asked)
        place.process.kill()
        prompt.cancel()
        async with opened(place.home, place.work, again, place.server, PATH="/bin:/usr/bin:/opt/bin") as second:
            await second.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])
            await again.until(lambda: again.asked, 15)
            second.process.kill()
        async with another(_home(place.home), place.server) as terminal:
            entries = await terminal.runtime.store.history.entries(session)
            asked = [each.event for each in entries if isinstance(each.event, Asked)]
            answer = terminal.inbound("deny", answers=asked[0].question)
            await terminal.runtime.hermes.submit(answer, session)
            seen = [each.event async for each in terminal.runtime.hermes.follow(session, entries[-1].number)]
        client.hold.set()
        again.hold.set()

    assert len(asked) == 1
    assert not any(isinstance(each, Asked) for each in seen)
    assert isinstance(seen[-1], RunEnded)
    assert seen[-1].text == "Over."


async def test_a_question_with_choices_is_a_choice_and_its_answer_reaches_the_model(tmp_path: Path):
    async with editor(tmp_path, asking(["green", "black"]), Client(decide=choosing("black"))) as place:
        session = await place.begin()
        await place.say(session, "Tea")

    assert place.client.options == [["green", "black"]]
    assert "black" in place.client.text(session)


async def test_a_question_is_a_form_where_the_editor_has_them(tmp_path: Path):
    forms = []

    def form(mode: Json) -> Json:
        forms.append(mode.requested_schema)
        return schema.AcceptElicitationResponse(action="accept", content={"answer": "oolong"})

    async with editor(tmp_path, asking(None), Client(form=form), forms=True) as place:
        session = await place.begin()
        await place.say(session, "Tea")

    assert list(forms[0].properties) == ["answer"]
    assert "oolong" in place.client.text(session)


async def test_a_question_without_forms_ends_the_turn_and_the_next_prompt_answers_it(tmp_path: Path):
    async with editor(tmp_path, asking(None)) as place:
        session = await place.begin()
        first = await place.say(session, "Tea")
        asked = place.client.text(session)
        second = await place.say(session, "oolong")

    assert (first.stop_reason, second.stop_reason) == ("end_turn", "end_turn")
    assert "Which tea?" in asked
    assert "So:" in place.client.text(session)
    assert "oolong" in place.client.text(session)


async def test_a_permission_that_the_editor_cannot_show_is_asked_in_words(tmp_path: Path):
    def refuses(*_: object) -> str:
        raise RequestError.method_not_found("session/request_permission")

    async with editor(tmp_path, risky, Client(decide=refuses)) as place:
        session = await place.begin()
        prompt = asyncio.create_task(place.say(session, "Go"))
        await place.client.until(lambda: "/approve" in place.client.text(session))
        await place.say(session, "/deny not today")
        ended = await prompt

    assert ended.stop_reason == "end_turn"
    assert "not today" in results(place, session)
