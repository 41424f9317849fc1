"""docs/tools.md is true: every tool with its parameters, effect, capabilities and toolset, and no other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes_agent.app.manifest import TOOLSETS
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import Toolkit, needs_without_store
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import UnknownTool
from hermes_agent.core.tool import Tool
from hermes_agent.host.paths import Home
from hermes_agent.tools.schema import BoundTool
from tests.docs.pages import code, out_of_step, page, sections, table

DOORS = ("find_tools", "use_tool")
KINDS = {
    "string": "text",
    "boolean": "yes or no",
    "integer": "a whole number",
    "array": "a list of texts",
    "object": "an object",
}


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, tuple[Tool, str]]:
    """Every tool of the real toolbox, with its toolset (empty for the two that lead to others)."""
    home = Home(root=tmp_path, base=tmp_path).ensure()
    found: dict[str, tuple[Tool, str]] = {}
    for name in TOOLSETS:
        kit = Toolkit(needs_without_store(home, Settings(), {Options: Options(toolsets=(name,))}))
        box = kit.toolbox("cli")
        found |= {each: (box.get(each), "") for each in box.names if each in DOORS}
        found |= {tool.schema.name: (tool, name) for tool in kit.built_in.load(name)}
    return found


def takes(schema: Mapping[str, Any]) -> str:
    """What a parameter takes, in the manual's words."""
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    said = KINDS[schema["type"]]
    inside = schema.get("items", {}).get("properties", {})
    if inside:
        said = f"a list of items with {', '.join(f'`{name}`' for name in inside)}"
    match schema:
        case {"minimum": low, "maximum": high}:
            return f"{said}, {low} to {high}"
        case {"minimum": low}:
            return f"{said}, at least {low}"
        case {"maxItems": most}:
            return f"{said}, at most {most}"
    return said


def default_of(tool: Tool, name: str) -> str:
    """What holds where the parameter is left out, in the manual's words."""
    if name in tool.schema.parameters.get("required", ()):
        return "required"
    if not isinstance(tool, BoundTool):
        return "nothing"
    fields = {field.name: field for field in msgspec.structs.fields(tool.signature.shape)}
    match fields[name].default:
        case None | "":
            return "nothing"
        case bool(default):
            return "yes" if default else "no"
        case default:
            return f"`{default}`"


def effect_of(door: Tool) -> str:
    """The effect of a tool that leads to others; empty where it is that of the tool it leads to."""
    try:
        return door.facts({}, "/").effect
    except UnknownTool:
        return ""


def facts(tool: Tool, toolset: str) -> str:
    """The line that says what a call does and needs."""
    effect = tool.mark.effect if isinstance(tool, BoundTool) else effect_of(tool)
    rule = tool.mark.reads_when if isinstance(tool, BoundTool) else ""
    needs = ", ".join(f"`{need}`" for need in sorted(tool.needs)) or "nothing"
    said = f"Effect: `{effect}`{f' (`reads` when `{rule}`)' if rule else ''}" if effect else "Effect: that of the call"
    return f"{said} · needs: {needs} · toolset: {f'`{toolset}`' if toolset else 'always there'}"


def untrue(text: str, tools: Mapping[str, tuple[Tool, str]]) -> list[str]:
    """What a page of tools says otherwise than the tools themselves."""
    told = {name: body for name, body in sections(text, 2).items() if name in tools or "_" in name}
    problems = out_of_step(told, tools)
    for name in told.keys() & tools.keys():
        tool, toolset = tools[name]
        properties = tool.schema.parameters["properties"]
        real = [(f"`{each}`", takes(schema), default_of(tool, each)) for each, schema in properties.items()]
        said = [row[:3] for row in table(told[name], "parameter")]
        problems += [f"{name}: {row} is not in the manual" for row in real if row not in said]
        problems += [f"{name}: {row} is in the manual and not there" for row in said if row not in real]
        if facts(tool, toolset) not in told[name]:
            problems.append(f"{name}: the page does not say: {facts(tool, toolset)}")
    return problems


def test_every_tool_is_told_as_it_is(tools: dict[str, tuple[Tool, str]]):
    assert untrue(page("tools.md"), tools) == []


def test_every_effect_capability_and_toolset_is_told():
    text = page("tools.md")
    assert out_of_step((code(row[0])[0] for row in table(text, "effect")), Effect) == []
    assert out_of_step((code(row[0])[0] for row in table(text, "capability")), Capability) == []
    assert out_of_step((code(row[0])[0] for row in table(text, "toolset")), TOOLSETS) == []


def test_every_number_in_the_page_is_the_programs_own():
    settings = Settings()
    text = page("tools.md")
    for number in (settings.terminal.timeout, settings.terminal.max_timeout, settings.tool_output.max_bytes):
        assert f"{number:,}" in text


def test_a_tool_that_is_left_out_a_wrong_default_and_a_tool_that_is_not_there_are_found(
    tools: dict[str, tuple[Tool, str]],
):
    true = page("tools.md")
    tools = {name: tool for name, tool in tools.items() if f"## {name}\n" in true}
    assert len(untrue(true.replace("## todo", "## Something"), tools)) == 1
    assert untrue(f"{true}\n## fly_away\n", tools) == ["fly_away: is in the manual and not there"]
    assert (
        len(untrue(true.replace("| `offset` | a whole number, at least 1 | `1` |", "| `offset` | text | `2` |"), tools))
        == 2
    )
    assert len(untrue(true.replace("Effect: `asks`", "Effect: `reads`"), tools)) == 1
