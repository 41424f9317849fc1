"""A process without MCP servers loads nothing of them; a project's servers count where its folder is trusted."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.app.folder_trust import TrustedFolders
from hermes_agent.app.mcp.offered import mcp_tools
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import needs_without_store
from hermes_agent.core.clock import SystemClock
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import Home
from hermes_agent.tools.mcp.settings import McpServerSettings

PROJECT = {"mcpServers": {"theirs": {"command": "run"}, "own": {"command": "other"}}}


def needs_of(tmp_path: Path, settings: Settings) -> Needs:
    home = Home(root=tmp_path / "home", base=tmp_path / "home").ensure()
    return needs_without_store(home, settings, {TrustedFolders: TrustedFolders(home, SystemClock())})


def test_without_a_server_nothing_is_dynamic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    assert not mcp_tools(needs_of(tmp_path, Settings())).dynamic


def test_a_configured_server_loads_no_sdk():
    code = """
import sys
from pathlib import Path
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import Toolkit, needs_without_store
from hermes_agent.host.paths import Home
from hermes_agent.tools.mcp.settings import McpServerSettings
home = Home(root=Path(sys.argv[1]), base=Path(sys.argv[1])).ensure()
servers = {f"s{number}": McpServerSettings(command="run") for number in range(20)}
toolkit = Toolkit(needs_without_store(home, Settings(mcp_servers=servers)))
names = [tool.name for tool in toolkit.toolbox("cli").offered]
assert names[-2:] == ["find_tools", "use_tool"], names
assert not {"mcp", "mcp_types", "pydantic", "httpx2"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code, "/tmp/no-home-of-anybody"], check=True, timeout=25)


async def test_a_projects_servers_count_once_its_folder_is_trusted_and_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    file = project / ".mcp.json"
    file.write_text(json.dumps(PROJECT))
    settings = Settings(mcp_servers={"own": McpServerSettings(command="mine")})
    needs = needs_of(tmp_path, settings)

    def names() -> dict[str, str]:
        fresh = Needs({**needs._values, TrustedFolders: TrustedFolders(needs.get(Home), SystemClock())})
        return {server.name: server.where for server in mcp_tools(fresh).all}

    assert names() == {"own": "mine"}
    await needs.get(TrustedFolders).trust(str(project))
    assert names() == {"own": "mine", "theirs": "run"}
    await asyncio.to_thread(file.write_text, json.dumps({"mcpServers": {"theirs": {"command": "evil"}}}))
    assert names() == {"own": "mine"}
