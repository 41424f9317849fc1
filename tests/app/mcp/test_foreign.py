from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_agent.app.mcp.foreign import editor_servers, project_servers, read_servers
from hermes_agent.core.errors import ConfigError
from hermes_agent.tools.mcp.settings import secrets_in


def test_files_of_other_programs_are_read(tmp_path: Path):
    file = tmp_path / "mcp.json"
    file.write_text('// VS Code\n{"servers": {"a": {"type": "http", "url": "https://x.test/mcp"}, "b": {"args": 7}}}')

    found = read_servers(file)

    assert found is not None
    assert [(each.name, each.where, each.source) for each in found.servers] == [("a", "https://x.test/mcp", str(file))]
    assert len(found.skipped) == 1


def test_a_projects_servers_stay_behind_the_wall(tmp_path: Path):
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "run", "env": {"K": "${KEY}"}}}}))

    (server,) = project_servers(tmp_path)

    assert server.settings.jail
    assert server.settings.env == {"K": "${secret:KEY}"}


@pytest.mark.parametrize("text", ["[1, 2]", "{}", '{"mcpServers": []}'])
def test_a_file_that_names_none_has_none(tmp_path: Path, text: str):
    (tmp_path / ".mcp.json").write_text(text)

    assert project_servers(tmp_path) == ()


def test_what_is_no_json_is_a_sentence(tmp_path: Path):
    (tmp_path / ".mcp.json").write_text("{")

    with pytest.raises(ConfigError, match=r"\.mcp\.json is not JSON"):
        project_servers(tmp_path)


@pytest.mark.parametrize(
    ("given", "name"), [("@scope/my tools", "scope_my_tools"), ("../x", "x"), ("\u202e", "server")]
)
def test_a_server_of_an_editor_has_a_name_whatever_the_editor_calls_it(given: str, name: str):
    (server,) = editor_servers([(given, {"command": "run"})])

    assert server.name == name


def test_a_file_of_vs_code_is_read_with_its_comments_inputs_and_last_commas(tmp_path: Path):
    file = tmp_path / "mcp.json"
    file.write_text(
        """{ // what one asks for
          "inputs": [{"id": "gh-token"}], /* and
          "servers": {} */
          "servers": {
            "a": {"url": "https://x.test//mcp", "headers": {"Authorization": "Bearer ${input:gh-token}", }},
            "b": {"command": "${workspaceFolder}/run", "args": ["//,]", ],},
            "c": {"command": "run", "envFile": ".env"}, "d": 3,
          },
        }"""
    )

    found = read_servers(file)

    assert found is not None
    assert [each.where for each in found.servers] == ["https://x.test//mcp", "./run //,]"]
    assert found.servers[0].settings.headers == {"Authorization": "Bearer ${secret:gh_token}"}
    assert [why.partition(f"{file}: ")[2][:7] for why in found.skipped] == ["c has i", "d is no"]


@pytest.mark.parametrize("written", ["${KEY}", "${input:KEY}", "\\u0024{env:KEY}", "$\\u007bsecret:KEY:-x}"])
def test_the_secrets_of_a_file_are_named_however_they_are_written(written: str):
    text = '{"mcpServers": {"a": {"command": "run", "env": {"K": "HERE"}}}, }'
    assert secrets_in(text.replace("HERE", written)) == ["KEY"]


@pytest.mark.parametrize("value", ["${secret:KEY}", "${input:KEY}"])
def test_a_server_of_an_editor_gets_no_secret(value: str):
    with pytest.raises(ConfigError, match="may name no secret"):
        editor_servers([("a", {"command": "run", "env": {"K": value}})])
