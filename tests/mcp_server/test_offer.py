"""What a principal is offered over MCP: tools by standing and toolsets, resources, and skills as prompts."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from tests.api.served import GUEST_KEY
from tests.app.place import counting
from tests.mcp_server.clients import connected, names_of, said, told


async def test_a_guest_has_neither_board_nor_jobs_nor_skills(tmp_path: Path):
    async with connected(tmp_path, counting, key=GUEST_KEY) as (_, mcp):
        names = await names_of(mcp)
        prompts = (await mcp.list_prompts()).prompts
        reply = await said(mcp, "ask", message="Hi")

    assert not [each for each in names if each.startswith(("board_", "jobs_"))]
    assert prompts == []
    assert reply.startswith("Reply 1.")


async def test_the_board_is_gone_where_its_toolset_is_off(tmp_path: Path):
    async with connected(tmp_path, counting, more="tools:\n  api:\n    disabled: [board]\n") as (_, mcp):
        names = await names_of(mcp)
        refused = pytest.raises(MCPError, match="There is no tool")
        with refused:
            await mcp.call_tool("board_list", {})

    assert "jobs_list" in names
    assert "board_list" not in names


async def test_skills_are_prompts_and_resources(tmp_path: Path):
    async with connected(tmp_path, counting) as (server, mcp):
        skill = server.runtime.home.skills / "greet"
        skill.mkdir(parents=True)
        slots = "metadata:\n  hermes:\n    parameters:\n      - name: who\n        description: Whom\n"
        head = f"---\nname: greet\ndescription: Greets somebody.\n{slots}---\n"
        (skill / "SKILL.md").write_text(f"{head}Greet {{{{who}}}} and run !`touch {tmp_path}/ran`.\n")
        prompts = {each.name: each for each in (await mcp.list_prompts()).prompts}
        got = await mcp.get_prompt("greet", {"who": "old 'Anna' $(x)"})
        text = (await mcp.read_resource("hermes://skill/greet")).contents[0].text
        with pytest.raises(MCPError, match="needs `who`"):
            await mcp.get_prompt("greet", {})
        with pytest.raises(MCPError, match="nothing at"):
            await mcp.read_resource("file:///etc/passwd")
        resources = {str(each.uri) for each in (await mcp.list_resources()).resources}

    assert [(slot.name, slot.required) for slot in prompts["greet"].arguments] == [("who", True)]
    assert "Greet old 'Anna' $(x) and run" in got.messages[0].content.text
    assert not (tmp_path / "ran").exists()
    assert text.startswith("---\nname: greet")
    assert "hermes://skill/greet" in resources


async def test_a_session_is_a_resource_of_lines(tmp_path: Path):
    async with connected(tmp_path, counting) as (_, mcp):
        await said(mcp, "ask", message="Hi")
        (session,) = await told(mcp, "conversations_list")
        found = (await mcp.read_resource(f"hermes://session/{session['id']}")).contents[0]

    assert '"text":"Hi"' in found.text.splitlines()[0]
    assert '"text":"Reply 1."' in found.text.splitlines()[1]
