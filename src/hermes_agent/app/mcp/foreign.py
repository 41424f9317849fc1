"""MCP servers that files of other programs name (`mcpServers` of Claude and Cursor, `servers` of VS Code), and a
project's `.mcp.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.paths import read_small
from hermes_agent.tools.mcp.settings import (
    EDITOR,
    HANDLE,
    WORKSPACE,
    McpServerSettings,
    Server,
    from_json,
    secret_of,
    servers_of,
)

PROJECT_SERVERS = ".mcp.json"
LARGEST = 1 << 20
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
KEYS = ("mcpServers", "servers", "mcp_servers")
KNOWN = (
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
)
"""Where programs keep the servers of a project."""
PERSONAL = (
    ".claude.json",
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
)
"""Where they keep those of a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a file names: its servers, and why others could not be taken."""

    path: Path
    servers: tuple[Server, ...]
    skipped: tuple[str, ...] = ()


def read_servers(path: Path) -> Found | None:
    """The servers that a file names; None where there is no such file. Blocks. Raises `ConfigError` for one that is no
    JSON."""
    content = read_small(path, LARGEST)
    if content is None:
        return None
    try:
        plain = from_json(content)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is not JSON ({error}).") from error
    plain = plain if isinstance(plain, dict) else {}
    named: dict[str, Any] = next((plain[key] for key in KEYS if isinstance(plain.get(key), dict)), {})
    servers: list[Server] = []
    skipped: list[str] = []
    for name, entry in named.items():
        try:
            servers += servers_of({name: _settings(f"{path}: {name}", entry)}, str(path))
        except ConfigError as error:
            skipped.append(str(error))
    return Found(path=path, servers=tuple(servers), skipped=tuple(skipped))


def project_servers(root: Path) -> tuple[Server, ...]:
    """The servers of a project's own file, which stay behind the wall. Blocks. Raises `ConfigError`."""
    found = read_servers(root / PROJECT_SERVERS)
    return tuple(replace(each, settings=replace(each.settings, jail=True)) for each in found.servers) if found else ()


def editor_servers(given: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Server, ...]:
    """The servers that an editor names for a session, behind the wall. Raises `ConfigError`, also for one that asks for
    a secret: an editor's settings may come from a project."""
    if any(HANDLE.search(str(value)) for _, entry in given for value in entry.values()):
        raise ConfigError("An editor's MCP server may name no secret: put the server into config.yaml.")
    named = {_UNSAFE.sub("_", name).lstrip("_-")[:40] or "server": _settings(name, entry) for name, entry in given}
    if len(named) < len(given):
        raise ConfigError("Two MCP servers of the editor have the same name.")
    return servers_of(named, EDITOR)


def _settings(name: str, entry: object) -> McpServerSettings:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{name} is no object.")
    args, env, headers = entry.get("args") or (), entry.get("env") or {}, entry.get("headers") or {}
    if not isinstance(args, list | tuple) or not isinstance(env, Mapping) or not isinstance(headers, Mapping):
        raise ConfigError(f"{name}: `args` is a list, `env` and `headers` are objects.")
    texts = {key: entry.get(key) or "" for key in ("command", "cwd", "url", "serverUrl")}
    if wrong := next((key for key, value in texts.items() if not isinstance(value, str)), ""):
        raise ConfigError(f"{name}: `{wrong}` is a text.")
    if entry.get("envFile"):
        raise ConfigError(f"{name} has its variables in a file (`envFile`): add it with `hermes mcp add --env`.")
    return McpServerSettings(
        command=_ours(texts["command"]),
        args=tuple(_ours(each) for each in args),
        env={str(key): _ours(value) for key, value in env.items()},
        cwd=_ours(texts["cwd"]),
        url=_ours(texts["url"] or texts["serverUrl"]),
        transport="sse" if entry.get("type", entry.get("transport")) == "sse" else "http",
        headers={str(key): _ours(value) for key, value in headers.items()},
        enabled=entry.get("disabled") is not True and entry.get("enabled") is not False,
    )


def _ours(value: object) -> str:
    """A value with its references in the one form that is used here. What VS Code would ask for is a secret."""

    def put(found: re.Match[str]) -> str:
        return f"${{{secret_of(found)}:-{found[2]}}}" if found[2] else f"${{secret:{secret_of(found)}}}"

    return HANDLE.sub(put, str(value).replace(WORKSPACE, "."))
