"""Tools of several sources: some of them come and go, and no prefix changes with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_agent.app.manifest import BuiltIn
from hermes_agent.app.process import Options
from hermes_agent.app.tool_sources import ToolSource
from hermes_agent.core.chat import Busy, Conversation, Inbound, Principal, Standing
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.events import RunEnded
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import CallContext, Tool, tool
from hermes_agent.host.late import Needs
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.runs.front import Hermes
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.tools.schema import from_function
from tests.app.place import another, counting, place, settle_home


def made(name: str) -> Tool:
    return from_function(name, lambda: f"{name} did it", f"Does {name}.", ())


class Changing:
    """A `ToolSource` whose tools are those of these names, except for guests."""

    dynamic = True
    quarantined = ()

    def __init__(self, *names: str) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._tools: Sequence[Tool] = tuple(map(made, names))
        self.closed = 0

    def source(self, _: Needs) -> ToolSource:
        return self

    def become(self, *names: str) -> None:
        self._tools = tuple(map(made, names))
        for changed in self._listeners:
            changed()

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]:
        return () if surface == "guest" else self._tools

    def subscribe(self, changed: Callable[[], None]) -> None:
        self._listeners.append(changed)

    async def ready(self) -> None:
        pass

    async def look(self, workspace: str) -> None:
        pass

    def news(self, session: str) -> str:
        return ""

    async def close(self) -> None:
        self.closed += 1


class NoteTools:
    """A toolset with a need of its own: the front door."""

    def __init__(self, hermes: Hermes) -> None:
        self._hermes = hermes

    @tool(effect=Effect.WRITES, needs=(Capability.SPAWN,))
    async def note_later(self, words: str, context: CallContext) -> str:
        """Say something in this conversation, once this run is over.

        Args:
            words: what is said
        """
        record = await self._hermes.record(context.session)
        platform, _, user = record.principal.partition(":")
        later = Inbound(
            source="note",
            source_id=context.key,
            principal=Principal(platform=platform, user=user, standing=Standing.OWNER),
            conversation=Conversation.parse(record.conversation),
            parts=(Text(text=words, origin=Origin.OWNER),),
            received=record.updated,
            busy=Busy.ALONE,
        )
        await self._hermes.submit(later, record.id)
        return "It will be said."


def note_tools(needs: Needs) -> NoteTools:
    """What the line of the table names."""
    return NoteTools(needs.get(Hermes))


TAIL = "Tools that come and go"


def told(heard: Heard) -> list[str]:
    """What each note on such tools says, the oldest first."""
    notes = [note for note in heard.notes if TAIL in note]
    return [note.partition(f"## {TAIL}\n")[2].splitlines()[0] for note in notes]


def names(heard: Heard) -> set[str]:
    return {tool.name for tool in heard.tools}


async def test_what_comes_and_goes_is_told_beside_the_message_and_leaves_the_prefix_as_it_was(tmp_path: Path):
    source = Changing("plant_tree")
    async with place(tmp_path, counting, Options(tool_sources=(source.source,))) as here:
        await here.say("One")
        source.become("plant_tree", "paint_wall")
        await here.say("Two")
        await here.say("Three")
        source.become()
        await here.say("Four")

    first, last = here.server.asked[0], here.server.asked[-1]
    assert {"find_tools", "use_tool"} <= names(first)
    assert not {"plant_tree", "paint_wall"} & names(last)
    assert len({str(exchange.body["tools"]) for exchange in here.server.exchanges}) == 1
    assert len({asked.system for asked in here.server.asked}) == 1
    assert [note.rpartition(": ")[2] for note in told(last)] == [
        "plant_tree.",
        "paint_wall, plant_tree.",
        "Nothing any more.",
    ]
    assert source.closed == 1


async def test_one_that_came_in_the_middle_of_a_run_is_found_and_used_and_one_that_went_is_not_there(tmp_path: Path):
    source = Changing()
    script = [
        Call("find_tools", {"query": "plant tree"}),
        Call("use_tool", {"name": "plant_tree"}),
        Call("use_tool", {"name": "plant_tree"}),
        Say("Done."),
    ]

    def stepping(heard: Heard) -> Call | Say:
        step = sum(message.role == "assistant" for message in heard.messages)
        source.become(*(["plant_tree"] if step < 2 else []))
        return script[step]

    async with place(tmp_path, stepping, Options(tool_sources=(source.source,))) as here:
        assert (await here.say("Plant a tree")).text == "Done."

    found, used, gone = [str(message.parts) for message in here.server.asked[-1].messages if message.role == "tool"]
    assert "Does plant_tree." in found
    assert "plant_tree did it" in used
    assert "There is no tool `plant_tree`" in gone


async def test_another_process_and_a_later_one_keep_the_prefix_and_tell_what_they_have(tmp_path: Path):
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        one, two = Changing("plant_tree"), Changing("plant_tree", "paint_wall")
        async with another(home, server, Options(tool_sources=(one.source,))) as here:
            await here.say("Hi")
            async with another(home, server, Options(tool_sources=(two.source,))) as beside:
                assert beside.record.id == here.record.id
                await beside.say("And here?")
        async with another(home, server, Options(tool_sources=(two.source,))) as later:
            await later.say("And later?")
        async with another(home, server) as without:
            await without.say("And without?")

    prefixes = {(str(each.body["tools"]), str(each.body["messages"][0])) for each in server.exchanges}
    assert len(prefixes) == 1
    assert [note.rpartition(": ")[2] for note in told(server.asked[-1])] == [
        "plant_tree.",
        "paint_wall, plant_tree.",
        "Nothing any more.",
    ]


async def test_a_toolset_with_a_need_of_its_own_is_one_line_of_the_table(tmp_path: Path):
    table = {"notes": "tests.app.test_tool_sources:note_tools"}
    script = [Call("note_later", {"words": "And now?"}), Say("Noted."), Say("Now.")]
    options = Options(tool_sources=(lambda needs: BuiltIn(needs, table),), allow=("note_later",))
    async with place(tmp_path, script, options) as here:
        after = await here.tell("Note it")
        assert (await here.ended(after)).text == "Noted."
        ends = []
        async for seen in here.runtime.hermes.watch(here.record.id, after):
            if isinstance(seen.event, RunEnded):
                ends.append(seen.event.text)
            if len(ends) == 2:
                break

    assert "note_later" in names(here.server.asked[0])
    assert ends == ["Noted.", "Now."]


async def test_guests_have_what_the_source_gives_guests(tmp_path: Path):
    source = Changing("plant_tree")
    async with place(tmp_path, [], Options(tool_sources=(source.source,))) as here:
        kit = here.runtime.snapshots.now.toolkit
        assert "plant_tree" in kit.toolbox("cli").names
        assert "plant_tree" not in kit.toolbox("guest").names


async def test_a_name_that_is_taken_stays_whose_it_was(tmp_path: Path):
    source = Changing("todo", "use_tool", "plant_tree")
    async with place(tmp_path, [], Options(tool_sources=(source.source,))) as here:
        box = here.runtime.toolbox
        assert list(box.passing) == ["plant_tree"]
        assert box.get("todo").schema.description != "Does todo."
