"""The toolsets themselves: each built-in one gives tools, and every tool has a schema."""

from pathlib import Path

import pytest

from hermes_agent.app.manifest import FILE, TOOLSETS, BuiltIn, LazyTool, entry_of, lazy, manifest, written
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import needs_without_store
from hermes_agent.core.errors import BadArguments
from hermes_agent.host.paths import Home
from tests.tools.bench import Context


def test_every_toolset_has_tools_and_no_two_have_one_name(tmp_path: Path):
    kit = BuiltIn(needs_without_store(Home(root=tmp_path / "home", base=tmp_path / "home"), Settings()))

    names = [tool.schema.name for toolset in TOOLSETS for tool in kit.load(toolset)]

    assert {"read_file", "terminal", "skill_view", "memory", "session_search"} <= set(names)
    assert len(names) == len(set(names))


@pytest.fixture
def kit(tmp_path: Path) -> BuiltIn:
    return BuiltIn(needs_without_store(Home(root=tmp_path / "home", base=tmp_path / "home"), Settings()))


def test_the_cards_say_what_the_tools_say_of_themselves(kit: BuiltIn):
    sets = {name: kit.load(name) for name in TOOLSETS}

    assert FILE.read_text() == written(sets), "python .ci/manual.py writes it anew"
    for name, tools in sets.items():
        assert [(made.schema, made.needs, made.core) for made in lazy(name, tuple)] == [
            (tool.schema, tool.needs, getattr(tool, "core", True)) for tool in tools
        ]


def test_a_toolset_is_loaded_once_and_not_before_a_call(kit: BuiltIn):
    loads = []

    def load():
        loads.append(1)
        return kit.load("files")

    tools = {tool.schema.name: tool for tool in lazy("files", load)}
    assert set(tools) == {card.name for card in manifest()["files"]}
    assert not loads

    with pytest.raises(BadArguments):
        tools["read_file"].facts({}, "/")
    assert tools["write_file"].facts({"path": "a", "content": ""}, "/").paths == ("/a",)
    assert loads == [1]


async def test_a_call_reaches_the_tool_itself(kit: BuiltIn, tmp_path: Path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n")
    (tool,) = [tool for tool in kit.tools_of("files") if tool.schema.name == "read_file"]
    assert isinstance(tool, LazyTool)

    answer = await tool.run({"path": "a.txt"}, Context(workspace=str(tmp_path / "work")))

    assert "1|one" in answer.parts[0].text
    assert entry_of(tool).name == "read_file"
