"""Each slash command, as a person types it."""

import asyncio

import pytest

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import find_command
from hermes_agent.core.errors import HermesError, NoModel, UnknownSession
from hermes_agent.core.events import MessageTaken, Outcome, ToolStarted
from hermes_agent.core.inbound import Busy, Conversation, Principal, Standing
from hermes_agent.core.messages import Image, Text
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Hang
from tests.app.place import place


def spoken(heard) -> int:
    return sum(message.role == "assistant" for message in heard.messages)


def counting(heard):
    return Say(f"Reply {spoken(heard) + 1}.")


@pytest.mark.parametrize("line", ["/etc/hosts", "/", "hello /new", "", "/tmp/x y", "//", "/new/x"])
def test_a_path_is_no_command(line: str):
    assert find_command(line) is None


@pytest.mark.parametrize(("line", "near"), [("/halp", "/help"), ("/contnue", "/continue"), ("/zzzz", "See `/help`")])
def test_an_unknown_command_names_the_nearest(line: str, near: str):
    with pytest.raises(HermesError, match=near):
        find_command(line)


def test_a_command_gets_the_rest_of_the_line():
    command, rest = find_command("  /title  A  long title ")

    assert (command.name, rest) == ("title", "A  long title")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_name_of_its_line_in_the_table(name: str):
    assert find_command(f"/{name}")[0].name == name


async def test_words_are_no_command(tmp_path):
    async with place(tmp_path, counting) as here:
        assert await here.type("What is /etc/hosts?") is None


async def test_new_begins_another_session_in_the_same_place(tmp_path):
    async with place(tmp_path, counting) as here:
        first = here.record
        await here.say("Hi")
        text = await here.text("/new The second")

        assert here.record.id != first.id
        assert text == f"New session {here.record.id}."
        assert (here.record.title, here.record.workspace) == ("The second", first.workspace)
        current = await here.runtime.store.sessions.current(here.record.conversation)
        assert current.id == here.record.id


async def test_resume_goes_back_by_title_or_id(tmp_path):
    async with place(tmp_path, counting) as here:
        first = here.record
        await here.type("/title First one")
        await here.type("/new")
        assert await here.text("/resume first one") == f"Resumed {first.id} (First one)."
        assert here.record.id == first.id
        await here.type("/new")
        await here.type(f"/resume {first.id}")
        assert here.record.id == first.id
        assert first.id in await here.text("/resume")


async def test_resume_finds_nobody_elses_session(tmp_path):
    async with place(tmp_path, counting) as here:
        stranger = Principal(platform="telegram", user="7", standing=Standing.MEMBER)
        there = Conversation(platform="telegram", chat="7")
        other = await here.runtime.hermes.open_session(there, stranger, workspace="/")

        with pytest.raises(UnknownSession):
            await here.type(f"/resume {other.id}")
        assert other.id not in await here.text("/sessions")


async def test_sessions_lists_the_latest(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.type("/title One")
        await here.type("/new Two")

        assert [line.split("  ")[-1] for line in (await here.text("/sessions")).splitlines()] == ["Two", "One"]
        assert len((await here.text("/sessions 1")).splitlines()) == 1
        assert len((await here.text("/sessions ²")).splitlines()) == 2


async def test_branch_copies_the_conversation_and_leaves_the_original_alone(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("One")
        original = here.record
        await here.type("/branch Another way")
        await here.say("Two")

        assert here.record.parent == original.id
        assert await here.transcript() == ["user: One", "assistant: Reply 1.", "user: Two", "assistant: Reply 2."]
        here.record = original
        assert await here.transcript() == ["user: One", "assistant: Reply 1."]


async def test_title_shows_and_sets(tmp_path):
    async with place(tmp_path, counting) as here:
        assert await here.text("/title") == "(untitled)"
        await here.type("/title Grüße")
        assert await here.text("/title") == "Grüße"


@pytest.mark.parametrize(("line", "left"), [("/undo", 2), ("/undo 0", 2), ("/undo 2", 0), ("/undo 99", 0)])
async def test_undo_takes_back_whole_exchanges(tmp_path, line, left):
    async with place(tmp_path, counting) as here:
        await here.say("One")
        await here.say("Two")
        await here.type(line)

        assert len(await here.transcript()) == left
        assert (await here.say("Three")).outcome is Outcome.ANSWERED


async def test_undo_again_goes_further_back_and_ends(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("One")
        await here.say("Two")
        await here.type("/undo")
        await here.type("/undo")
        with pytest.raises(HermesError, match="nothing to undo"):
            await here.type("/undo")

        assert await here.transcript() == []


async def test_retry_asks_again_with_the_same_or_other_words(tmp_path):
    async with place(tmp_path, counting) as here:
        with pytest.raises(HermesError, match="nothing to retry"):
            await here.type("/retry")
        await here.say("One")
        done = await here.type("/retry")
        await here.say(done.submit)
        assert await here.transcript() == ["user: One", "assistant: Reply 1."]
        done = await here.type("/retry Other words")
        await here.say(done.submit)
        assert await here.transcript() == ["user: Other words", "assistant: Reply 1."]


async def test_retry_keeps_the_picture(tmp_path):
    picture = Image(data="aGk=", media_type="image/png")
    async with place(tmp_path, counting) as here:
        inbound = here.inbound("See")
        object.__setattr__(inbound, "parts", (*inbound.parts, picture))
        await here.say(inbound)
        done = await here.type("/retry")

        assert [type(part) for part in done.submit.parts] == [Text, Image]


async def test_continue_goes_on_with_a_run_that_reached_its_limit(tmp_path):
    def script(heard):
        return Say("So far.") if not heard.use_tools else Call("todo", {})

    async with place(tmp_path, script, more="agent:\n  max_turns: 1\n") as here:
        assert (await here.say("Go")).outcome is Outcome.LIMIT
        done = await here.type("/continue")
        assert done.submit.resumes
        assert (await here.say(done.submit)).turns == 2
        assert (await here.transcript())[-2] != "user: Go"


async def test_stop_ends_the_run_under_way(tmp_path):
    async with place(tmp_path, [Hang()]) as here:
        assert await here.text("/stop") == "Nothing is running."
        after = await here.tell("Go")
        await here.until(MessageTaken)
        assert await here.text("/stop", busy=True) == "Stopped."
        assert (await here.ended(after)).outcome is Outcome.STOPPED


async def test_steer_is_read_at_the_next_turn_and_queue_at_the_end(tmp_path):
    def script(heard):
        if spoken(heard) == 0:
            return Call("terminal", {"command": "until test -e go; do sleep 0.02; done", "timeout": 10})
        return counting(heard)

    async with place(tmp_path, script, more="approvals:\n  mode: off\n") as here:
        after = await here.tell("Go")
        await here.until(ToolStarted)
        queued = await here.type("/queue Later", busy=True)
        steered = await here.type("/steer Now", busy=True)
        assert (queued.submit.busy, steered.submit.busy) == (Busy.QUEUE, Busy.STEER)
        await here.tell(queued.submit)
        await here.tell(steered.submit)
        (tmp_path / "work/go").touch()
        await here.ended(after)

        assert await here.transcript() == [
            "user: Go",
            "user: Now",
            "assistant: Reply 2.",
            "user: Later",
            "assistant: Reply 3.",
        ]


@pytest.mark.parametrize("line", ["/steer", "/queue"])
async def test_steering_needs_words(tmp_path, line):
    async with place(tmp_path, counting) as here:
        with pytest.raises(HermesError, match="Say what"):
            await here.type(line)


@pytest.mark.parametrize("line", ["/new", "/resume x", "/branch", "/undo", "/retry", "/continue", "/model demo/x"])
async def test_what_changes_the_conversation_has_to_wait_for_the_run(tmp_path, line):
    async with place(tmp_path, counting) as here:
        with pytest.raises(HermesError, match=r"has to wait: a run is under way. `/stop` ends it."):
            await here.type(line, busy=True)


async def test_model_shows_and_chooses_for_this_session(tmp_path):
    async with place(tmp_path, counting) as here:
        assert await here.text("/model") == "Model: custom/m"
        assert await here.text("/model custom/other") == "This session now asks custom/other."
        await here.say("Hi")
        assert here.server.asked[-1].model == "other"
        await here.type("/new")
        assert here.record.model == "custom/other"


async def test_a_model_that_cannot_be_asked_is_refused_and_the_old_one_stays(tmp_path):
    async with place(tmp_path, counting) as here:
        with pytest.raises(NoModel, match="ANTHROPIC_API_KEY"):
            await here.type("/model anthropic/claude-opus-5-5")
        assert await here.text("/model") == "Model: custom/m"


async def test_another_vendors_model_is_not_asked_at_the_configured_address(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.type("/model demo/scripted")
        ended = await here.say("Hi")

        assert here.server.exchanges == []
        assert ended.outcome is Outcome.ANSWERED
        await here.type("/model custom/m")
        await here.say("Hi")
        assert len(here.server.asked) == 1


async def test_tools_lists_every_tool(tmp_path):
    async with place(tmp_path, counting) as here:
        text = await here.text("/tools")

        assert {line.split()[0] for line in text.splitlines()} >= {"read_file", "terminal", "todo", "clarify"}


async def test_status_says_where_the_session_stands(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.type("/title Mine")
        await here.say("Hi")
        text = await here.text("/status", busy=True)

        assert f"Session  {here.record.id} (Mine)" in text
        assert "Model    custom/m" in text
        assert f"Folder   {tmp_path / 'work'}" in text
        assert "Run      under way" in text


async def test_status_shows_a_broken_config(tmp_path):
    async with place(tmp_path, counting, more="agnet:\n  max_turns: 3\n") as here:
        text = await here.text("/status")

        assert "agnet" in text
        assert "Model    none: `hermes setup` chooses one" in text
        assert "together" in await here.text("/context")


async def test_cost_counts_calls_and_tokens(tmp_path):
    async with place(tmp_path, counting) as here:
        assert await here.text("/cost") == "Nothing used yet."
        await here.say("Hi")
        text = await here.text("/cost")

        assert text.startswith("1 model calls, ")
        assert "1 call(s) of unknown price" in text


async def test_context_adds_up(tmp_path):
    async with place(tmp_path, counting) as here:
        assert "together" in await here.text("/context")
        await here.say("Hi")
        lines = (await here.text("/context")).splitlines()
        counts = {line[:18].strip(): int(line[18:27].replace(",", "")) for line in lines}

        assert counts.pop("together") == sum(counts.values())
        assert {"identity", "how to work", "tools", "messages"} <= counts.keys()


async def test_help_shows_all_or_one(tmp_path):
    async with place(tmp_path, counting) as here:
        text = await here.text("/help")

        assert {line.split()[0] for line in text.splitlines()} == {f"/{name}" for name in COMMANDS}
        assert (await here.text("/help /undo")).startswith("/undo [how many]")
        assert len((await here.text("/help what")).splitlines()) == len(COMMANDS)


async def test_commands_of_two_people_do_not_wait_for_each_other(tmp_path):
    async with place(tmp_path, counting) as here:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(here.text("/status")) for _ in range(10)]

        assert len({task.result() for task in tasks}) == 1
