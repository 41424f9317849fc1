"""The toolsets themselves: each built-in one gives tools, and every tool has a schema."""

from pathlib import Path

from hermes_agent.app.manifest.built_in import TOOLSETS, BuiltIn
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import needs_without_store
from hermes_agent.host.paths import Home


def test_every_toolset_has_tools_and_no_two_have_one_name(tmp_path: Path):
    kit = BuiltIn(needs_without_store(Home(root=tmp_path, base=tmp_path), Settings()))

    names = [tool.schema.name for toolset in TOOLSETS for tool in kit.load(toolset)]

    assert {"read_file", "terminal", "skill_view", "memory", "session_search"} <= set(names)
    assert len(names) == len(set(names))
