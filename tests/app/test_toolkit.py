"""The built-in tools of a process."""

import pytest

from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.app.manifest import IN_CHATS, TOOLSETS, manifest
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import Toolkit, needs_without_store
from hermes_agent.core.errors import ConfigError, UnknownTool
from hermes_agent.host.paths import Home
from hermes_agent.tools.schema import Unusable, from_function
from hermes_agent.tools.surfaces import SurfaceTools

EVERYWHERE = [name for name in TOOLSETS if name not in IN_CHATS]


def toolkit(path, toolsets=None, extra=(), values=None, **tools):
    options = Options(toolsets=toolsets, extra_tools=extra)
    given = {Options: options, **(values or {})}
    return Toolkit(needs_without_store(Home(root=path, base=path), Settings(tools=tools), given))


async def nobody(question):
    raise AssertionError(question)


def names(kit: Toolkit) -> list[str]:
    return [schema.name for schema in kit.toolbox("cli").offered]


def test_all_toolsets_are_offered_in_a_fixed_order(tmp_path):
    in_order = [entry.name for toolset in EVERYWHERE for entry in manifest()[toolset] if entry.core]

    assert names(toolkit(tmp_path))[: len(in_order)] == in_order
    assert in_order[:4] == ["read_file", "write_file", "patch", "search_files"]


def test_toolsets_narrow_what_is_offered(tmp_path):
    assert names(toolkit(tmp_path, ("shell",))) == ["terminal", "process"]
    assert names(toolkit(tmp_path, ())) == []


def test_an_unknown_toolset_names_those_that_there_are(tmp_path):
    with pytest.raises(ConfigError, match=f"no toolset `magic`. There are: {', '.join(TOOLSETS)}"):
        toolkit(tmp_path, ("magic",))


def test_a_tool_of_ones_own_comes_last(tmp_path):
    own = from_function("mine", lambda: "ok", "Mine.", ())

    assert names(toolkit(tmp_path, ("todo",), [own])) == ["todo", "mine"]


def test_an_unknown_capability_is_refused(tmp_path):
    with pytest.raises(Unusable, match="`magic` is not a capability"):
        toolkit(tmp_path).hooks(("magic",), nobody, attended=True)


def test_nothing_is_made_before_the_first_call(tmp_path):
    kit = toolkit(tmp_path)
    kit.hooks(None, nobody, attended=True)

    assert list(tmp_path.iterdir()) == []


def test_a_webhook_and_a_guest_have_neither_files_nor_shell_nor_the_web(tmp_path):
    kit = toolkit(tmp_path)

    for surface, has in {
        "webhook": ["todo", "clarify"],
        "guest": ["todo", "memory", "session_search", "clarify"],
    }.items():
        assert [schema.name for schema in kit.toolbox(surface).offered] == has
        with pytest.raises(UnknownTool):
            kit.toolbox(surface).resolve("terminal", {"command": "ls"})


def test_settings_switch_toolsets_by_surface(tmp_path):
    kit = toolkit(tmp_path, cli=SurfaceTools(disabled=("shell",)), guest=SurfaceTools(enabled=("files",)))

    assert kit.built_in.toolsets("cli") == tuple(name for name in EVERYWHERE if name != "shell")
    assert kit.built_in.toolsets("guest") == ("files", "todo", "memory", "recall", "clarify")
    assert kit.built_in.toolsets("telegram") == tuple(EVERYWHERE)


def test_only_chats_can_be_sent_files_and_no_guest(tmp_path):
    kit = toolkit(tmp_path, values={People: People({"telegram": ChannelSettings()})})

    assert kit.built_in.toolsets("telegram") == tuple(TOOLSETS)
    assert "send_file" in [schema.name for schema in kit.toolbox("telegram").offered]
    assert not {"sending"} & {
        *kit.built_in.toolsets("cli"),
        *kit.built_in.toolsets("guest"),
        *kit.built_in.toolsets("webhook"),
    }


def test_a_wrong_toolset_in_the_settings_is_told(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean `shell`"):
        toolkit(tmp_path, cli=SurfaceTools(disabled=("shel",)))
