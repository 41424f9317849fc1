"""Runs: begun without waiting, watched from any number on, answered, stopped."""

import asyncio
from pathlib import Path

from hermes_agent.api.run_view import ref_of
from hermes_agent.core.chat import Conversation, Inbound, Principal, Standing
from hermes_agent.core.errors import DiskFull
from hermes_agent.core.events import MessageTaken
from hermes_agent.core.messages import Text
from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.store.inbox import Ending
from hermes_agent.testing.faults import Hang
from tests.api.served import MEMBER_KEY, OWNER_KEY, Server, lines, served, until
from tests.app.place import counting

ASK = Call("clarify", {"question": "Which one?", "choices": ["a", "b"]})
SLOW = Answer(pieces=(Say("One two three four."),), pace=Pace(first=0.2, between=0.02, characters=4))


async def waiting_for_nobody(server: Server, folder: Path) -> tuple[str, int]:
    """The session and the row of mail that nobody works on."""
    who = Principal(platform="api", user="anna", standing=Standing.MEMBER)
    place = Conversation(platform="api", chat_kind="name", chat="anna", thread="x")
    record = await server.runtime.hermes.open_session(place, who, workspace=str(folder))
    said = Inbound(
        source="api", source_id="odd", principal=who, conversation=place, parts=(Text(text="Hi"),), received=0.0
    )
    row = await server.runtime.store.inbox.accept(said, record.id, "nobody's")
    assert row is not None
    return record.id, row


def stops_of(run: str) -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == f"stop of {run}"]


async def test_a_run_is_begun_and_looked_at_later(tmp_path):
    async with served(tmp_path, counting) as server:
        begun = await server.ask("POST", "/v1/runs", {"input": "Hi"})
        over = await until(server, begun.json()["id"], "answered")
        more = await server.ask("POST", "/v1/runs", {"input": "More", "session": over["session"]})
        again = await until(server, more.json()["id"], "answered")

        assert (begun.status_code, begun.json()["status"]) == (202, "queued")
        assert (over["text"], again["text"]) == ("Reply 1.", "Reply 2.")
        assert over["session"] == again["session"]
        assert over["usage"]["total_tokens"] > 0
        assert over["model"] == "custom/m"


async def test_events_come_live_and_again_from_a_number_on(tmp_path):
    async with served(tmp_path, [SLOW]) as server:
        run = (await server.ask("POST", "/v1/runs", {"input": "Hi"})).json()["id"]
        live = (await server.ask("GET", f"/v1/runs/{run}/events")).text
        kinds = [event["event"]["kind"] for event in lines(live)]
        again = lines((await server.ask("GET", f"/v1/runs/{run}/events?after=2")).text)
        resumed = lines((await server.ask("GET", f"/v1/runs/{run}/events", headers={"last-event-id": "3"})).text)

    assert (kinds[0], kinds[-1]) == ("run_started", "run_ended")
    assert kinds.count("text_delta") > 2
    assert "event: run_ended\n" in live
    assert [event["number"] for event in again] == list(range(3, again[-1]["number"] + 1))
    assert [event["number"] for event in resumed] == [event["number"] for event in again][1:]


async def test_a_watcher_that_comes_back_in_the_middle_misses_nothing(tmp_path):
    async with served(tmp_path, [ASK, Say("Thanks.")]) as server:
        run = (await server.ask("POST", "/v1/runs", {"input": "Hi"})).json()["id"]
        await until(server, run, "waiting")
        headers = {"authorization": f"Bearer {OWNER_KEY}"}
        async with server.client.stream("GET", f"/v1/runs/{run}/events", headers=headers) as answer:
            assert await anext(line async for line in answer.aiter_lines() if line == "event: asked")
        asked = (await server.ask("GET", f"/v1/runs/{run}")).json()["question"]
        await server.ask("POST", f"/v1/runs/{run}/approval", {"answer": "a", "question": asked["id"]})
        rest = lines((await server.ask("GET", f"/v1/runs/{run}/events?after=4")).text)

        assert asked["text"] == "Which one?"
        assert asked["choices"] == ["a", "b"]
        assert rest[-1]["event"]["text"] == "Thanks."
        assert (await until(server, run, "answered"))["question"] is None
        late = await server.ask("POST", f"/v1/runs/{run}/answer", {"answer": "b"})
        assert (late.status_code, late.json()["error"]["code"]) == (409, "nothing_asked")


async def test_a_stop_ends_a_run_at_once_and_another_finds_nothing(tmp_path):
    async with served(tmp_path, [Hang()]) as server:
        run = (await server.ask("POST", "/v1/runs", {"input": "Hi"})).json()["id"]
        await until(server, run, "running")
        async with asyncio.timeout(2):
            stopped = await server.ask("POST", f"/v1/runs/{run}/stop")

        assert stopped.json() == {"done": True}
        assert (await until(server, run, "stopped"))["reason"] == "stopped"
        assert (await server.ask("POST", f"/v1/runs/{run}/stop")).json() == {"done": False}


async def test_a_run_that_is_stopped_before_it_began_does_nothing(tmp_path):
    async with served(tmp_path, lambda heard: Hang()) as server:
        begun = [(await server.ask("POST", "/v1/runs", {"input": f"Number {n}"})).json()["id"] for n in range(8)]
        answers = [(await server.ask("POST", f"/v1/runs/{run}/stop")).json() for run in begun]
        ends = [(await until(server, run, "stopped"))["status"] for run in begun]

    assert answers == [{"done": True}] * 8
    assert ends == ["stopped"] * 8


async def test_stopping_what_waits_behind_a_run_leaves_that_run_alone(tmp_path):
    slow = Answer(pieces=(Say("The first."),), pace=Pace(first=1.5))
    async with served(tmp_path, [slow, Hang()]) as server:
        wish = {"key": "mine", "busy": "queue"}
        first = (await server.ask("POST", "/v1/runs", {"input": "One", **wish})).json()
        await until(server, first["id"], "running")  # Mail that waits when a run begins is read together.
        second = (await server.ask("POST", "/v1/runs", {"input": "Two", **wish})).json()
        stopped = await server.ask("POST", f"/v1/runs/{second['id']}/stop")
        ends = [(await until(server, each["id"], "answered", "stopped")) for each in (first, second)]

    assert stopped.json() == {"done": True}
    assert first["session"] == second["session"]
    assert [each["status"] for each in ends] == ["answered", "stopped"]
    assert ends[0]["text"] == "The first."


async def test_a_message_for_a_run_under_way_is_part_of_it(tmp_path):
    async with served(tmp_path, [ASK, Say("Both.")]) as server:
        first = (await server.ask("POST", "/v1/runs", {"input": "One", "key": "mine"})).json()
        await until(server, first["id"], "waiting")
        await server.ask("POST", f"/v1/runs/{first['id']}/answer", {"answer": "a"})
        assert (await until(server, first["id"], "answered"))["text"] == "Both."
        entries = await server.log(first["session"])

        assert [entry.event.message.text for entry in entries if isinstance(entry.event, MessageTaken)] == ["One"]


async def test_runs_of_others_are_like_those_that_are_not_there(tmp_path):
    async with served(tmp_path, counting) as server:
        run = (await server.ask("POST", "/v1/runs", {"input": "Hi"})).json()["id"]
        await until(server, run, "answered")
        paths = [("GET", ""), ("GET", "/events"), ("POST", "/stop"), ("POST", "/answer")]
        for method, rest in paths:
            body = {"answer": "a"} if rest == "/answer" else None
            assert (await server.ask(method, f"/v1/runs/{run}{rest}", body, key=MEMBER_KEY)).status_code == 404
        for name in ("run_20260101_000000_abcdef_1", "nothing", f"{run}9"):
            assert (await server.ask("GET", f"/v1/runs/{name}")).status_code == 404


async def test_only_the_owner_chooses_the_folder_and_a_message_says_something(tmp_path):
    async with served(tmp_path, counting) as server:
        chosen = await server.ask("POST", "/v1/runs", {"input": "Hi", "workspace": str(tmp_path)})
        refused = await server.ask("POST", "/v1/runs", {"input": "Hi", "workspace": "/"}, key=MEMBER_KEY)
        empty = await server.ask("POST", "/v1/runs", {"input": []})
        odd = [await server.ask("POST", "/v1/runs", {"input": "Hi", "workspace": name}) for name in ("../x", "/a\0b")]
        session = (await server.ask("GET", f"/v1/sessions/{chosen.json()['session']}")).json()

        assert session["workspace"] == str(tmp_path)
        assert (refused.status_code, empty.status_code) == (403, 400)
        assert [each.status_code for each in odd] == [400, 400]


async def test_a_message_that_no_run_will_take_has_failed_with_its_reason(tmp_path):
    async with served(tmp_path, counting) as server:
        store = server.runtime.store
        session, row = await waiting_for_nobody(server, tmp_path)
        lease = await store.lanes.claim(("nobody's",))
        assert lease is not None
        await store.write(lambda tx: store.inbox.finish(tx, lease, [row], Ending.REFUSED, reason="Given up."))
        facts = (await server.ask("GET", f"/v1/runs/run_{session}_{row}", key=MEMBER_KEY)).json()

    assert (facts["status"], facts["text"]) == ("failed", "Given up.")


async def test_orders_to_stop_what_never_begins_wait_together_and_end_with_its_mail(tmp_path):
    async with served(tmp_path, counting) as server:
        session, row = await waiting_for_nobody(server, tmp_path)
        run = f"run_{session}_{row}"
        asked = [server.ask("POST", f"/v1/runs/{run}/stop", key=MEMBER_KEY) for _ in range(3)]
        answers = [(await each).json() for each in asked]
        waiting = stops_of(run)
        lease = await server.runtime.store.lanes.claim(("nobody's",))
        assert lease is not None
        await server.runtime.store.write(lambda tx: server.runtime.store.inbox.drop(tx, lease, [row], 1.0))
        async with asyncio.timeout(10):
            await asyncio.wait(waiting)

    assert answers == [{"done": True}] * 3
    assert len(waiting) == 1
    assert not stops_of(run)


async def test_an_order_to_stop_what_waits_holds_also_where_the_store_fails_for_a_moment(tmp_path):
    async with served(tmp_path, lambda heard: Hang()) as server:
        wish = {"key": "mine", "busy": "alone"}
        first = (await server.ask("POST", "/v1/runs", {"input": "One", **wish})).json()
        await until(server, first["id"], "running")
        second = (await server.ask("POST", "/v1/runs", {"input": "Two", **wish})).json()
        assert (await server.ask("POST", f"/v1/runs/{second['id']}/stop")).json() == {"done": True}
        server.runtime.hermes.scheduler.bus.fail(first["session"], DiskFull("No room left."))
        await server.ask("POST", f"/v1/runs/{first['id']}/stop")

        assert (await until(server, second["id"], "stopped"))["reason"] == "stopped"


async def test_an_order_to_stop_a_run_that_is_over_leaves_the_next_alone(tmp_path):
    slow = Answer(pieces=(Say("The second."),), pace=Pace(first=1.0))
    async with served(tmp_path, [Say("The first."), slow]) as server:
        first = (await server.ask("POST", "/v1/runs", {"input": "One", "key": "mine"})).json()
        await until(server, first["id"], "answered")
        ref = ref_of(first["id"])
        ran = (await server.log(ref.session))[0].run
        second = (await server.ask("POST", "/v1/runs", {"input": "Two", "key": "mine"})).json()
        await until(server, second["id"], "running")
        stopped = await server.runtime.hermes.stop_run(ref.session, ran, ref.row)
        over = await until(server, second["id"], "answered", "stopped")

    assert stopped is False
    assert (over["status"], over["text"]) == ("answered", "The second.")


async def test_runs_work_in_a_folder_of_their_own_and_not_among_the_program_s_files(tmp_path):
    async with served(tmp_path, counting) as server:
        top, found = server.runtime.home.root / "workspace", []
        for key in (OWNER_KEY, MEMBER_KEY):
            begun = (await server.ask("POST", "/v1/runs", {"input": "Hi"}, key=key)).json()
            found.append((await server.ask("GET", f"/v1/sessions/{begun['session']}")).json()["workspace"])

        assert found == [str(top), str(next((top / "people").iterdir()))]


async def test_a_folder_that_cannot_be_made_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    async with served(tmp_path, counting, api=f"  workspace: {tmp_path / 'file' / 'folder'}\n") as server:
        answer = await server.ask("POST", "/v1/runs", {"input": "Hi"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_workspace")


async def test_a_watcher_with_a_number_that_is_not_there_yet_leaves_with_the_run(tmp_path):
    async with served(tmp_path, [Hang()]) as server:
        begun = (await server.ask("POST", "/v1/runs", {"input": "Hi"})).json()
        await until(server, begun["id"], "running")
        watching = asyncio.ensure_future(server.ask("GET", f"/v1/runs/{begun['id']}/events?after=999999"))
        await server.ask("POST", f"/v1/runs/{begun['id']}/stop")
        async with asyncio.timeout(10):
            watched = await watching

    assert (watched.status_code, watched.text) == (200, "")


async def test_who_waits_for_what_no_run_will_take_is_told(tmp_path):
    async with served(tmp_path, counting) as server:
        session, row = await waiting_for_nobody(server, tmp_path)
        path = f"/v1/runs/run_{session}_{row}"
        waiting = asyncio.ensure_future(server.ask("GET", f"{path}/events", key=MEMBER_KEY))
        store = server.runtime.store
        lease = await store.lanes.claim(("nobody's",))
        assert lease is not None
        await store.write(lambda tx: store.inbox.finish(tx, lease, [row], Ending.REFUSED, reason="Given up."))
        async with asyncio.timeout(10):
            told = await waiting
        shown = (await server.ask("GET", path, key=MEMBER_KEY)).json()

    assert (told.status_code, told.text) == (200, "")
    assert (shown["status"], shown["text"]) == ("failed", "Given up.")


async def test_a_run_lists_its_agents(tmp_path):
    def script(heard):
        if "You work for another agent" in heard.system:
            return Say("Dug.")
        done = any(message.role == "assistant" for message in heard.messages)
        return Say("Done.") if done else Call("delegate_task", {"goal": "dig"})

    async with served(tmp_path, script) as server:
        run = (await server.ask("POST", "/v1/runs", {"input": "Hi"})).json()["id"]
        await until(server, run, "answered")
        found = (await server.ask("GET", f"/v1/runs/{run}/children")).json()["data"]
        theirs = await server.ask("GET", f"/v1/runs/{run}/children", key=MEMBER_KEY)

    assert [(each["goal"], each["status"], "Dug." in each["report"]) for each in found] == [("dig", "answered", True)]
    assert theirs.status_code == 404
