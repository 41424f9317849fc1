"""A memory beside the notes in a whole system."""

import json
from pathlib import Path

from hermes_agent.app.settings import Settings
from hermes_agent.core.chat import Conversation
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.paths import Home
from hermes_agent.host.schema import build
from hermes_agent.host.yaml_check import check
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.versions import Author
from tests.app.place import place
from tests.contracts.test_memory_backends import Double, openviking

HOLOGRAPHIC = "memory:\n  provider: holographic\n"


def telling(heard: Heard) -> Say | Call:
    if heard.last.role == "tool":
        return Say("Kept.")
    if heard.last.text.startswith("Keep"):
        return Call("recall_add", {"fact": "Kestrel is built with ninja."})
    return Say(heard.last.text)


async def test_a_fact_is_recalled_beside_a_later_message_and_stripped_from_the_reply(tmp_path: Path):
    async with place(tmp_path, telling, more=HOLOGRAPHIC) as here:
        await here.say("Keep that")
        await here.type("/new")
        ended = await here.say("How is kestrel built?")
        log = str([entry.event for entry in await here.log()])

        (fact,) = await here.runtime.store.known_facts.in_force()

        assert "Kestrel is built with ninja. [fact 1]" in log
        assert (fact.source.author, fact.source.principal) == (Author.FOREGROUND, here.runtime.owner.key)
        assert 0 < fact.source.first <= fact.source.last
        assert "ninja" not in ended.text
        assert "memory-context" not in ended.text
        assert {"recall_search", "recall_add", "fact_feedback", "fact_retract"} <= set(here.runtime.toolbox.names)


async def test_without_a_memory_there_are_no_such_tools(tmp_path: Path):
    async with place(tmp_path, telling) as here:
        assert not {"recall_search", "fact_feedback"} & set(here.runtime.toolbox.names)


async def test_a_memory_without_its_key_stops_no_run(tmp_path: Path):
    async with place(tmp_path, telling, more="memory:\n  provider: mem0\n") as here:
        assert (await here.say("Hi")).outcome == "answered"
    assert "mem0 needs a key" in (Home(root=tmp_path / "home", base=tmp_path / "home").log_file).read_text()


async def test_where_others_read_along_no_memory_is_used(tmp_path: Path):
    async with place(tmp_path, telling, more=HOLOGRAPHIC) as here:
        await here.say("Keep that")
        group = Conversation(platform="cli", chat_kind="group", chat="1")
        here.record = await here.runtime.hermes.open_session(group, here.runtime.owner, workspace=str(tmp_path))
        await here.say("How is kestrel built?")

        assert "ninja" not in json.dumps([str(entry.event) for entry in await here.log()])


async def test_a_memory_is_told_what_is_shortened_and_that_a_session_is_left(tmp_path: Path):
    double = Double(answers=openviking, header="")
    async with serve(double.handle) as server:
        settings = f"memory:\n  provider: openviking\n  provider_url: {server.url}\n"
        async with place(tmp_path, telling, more=settings) as here:
            for number in range(8):
                await here.say(f"Message {number}: " + "many words " * 200)
            await here.text("/compress")
            await here.say("And on.")
            await here.type("/new")
            await here.say("Another one.")
        committed = [path for _, path in double.seen].count("/api/v1/sessions/v1/commit")

    # At the compaction, at /new, and when the program ends.
    assert committed == 3


def test_a_second_memory_is_refused_with_both_names():
    for written in ("[honcho, mem0]", "honcho, mem0"):
        checked = check(f"memory:\n  provider: {written}\n".encode(), Settings, "config.yaml")

        assert "honcho, mem0" in checked.problems[0].text
        assert checked.problems[0].line == 2
        assert build(Settings, checked.values).memory.provider == "none"
