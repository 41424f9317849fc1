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
from hermes_agent.tools.mcp.settings import EDITOR, HANDLE, McpServerSettings, Server, servers_of

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
        plain = msgspec.json.decode(_without_comments(content))
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is not JSON ({error}).") from error
    plain = plain if isinstance(plain, dict) else {}
    named: dict[str, Any] = next((plain[key] for key in KEYS if isinstance(plain.get(key), dict)), {})
    servers: list[Server] = []
    skipped: list[str] = []
    for name, entry in named.items():
        try:
            servers += servers_of({name: _settings(entry)}, str(path))
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
    named = {_UNSAFE.sub("_", name).lstrip("_-")[:40] or "server": _settings(entry) for name, entry in given}
    if len(named) < len(given):
        raise ConfigError("Two MCP servers of the editor have the same name.")
    return servers_of(named, EDITOR)


def _settings(entry: object) -> McpServerSettings:
    if not isinstance(entry, Mapping):
        raise ConfigError("an entry is no object.")
    args, env, headers = entry.get("args") or (), entry.get("env") or {}, entry.get("headers") or {}
    if not isinstance(args, list | tuple) or not isinstance(env, Mapping) or not isinstance(headers, Mapping):
        raise ConfigError("`args` is a list, `env` and `headers` are objects.")
    return McpServerSettings(
        command=_text(entry, "command"),
        args=tuple(map(str, args)),
        env=_handles(env),
        cwd=_text(entry, "cwd"),
        url=_text(entry, "url") or _text(entry, "serverUrl"),
        transport="sse" if entry.get("type", entry.get("transport")) == "sse" else "http",
        headers=_handles(headers),
        enabled=entry.get("disabled") is not True and entry.get("enabled") is not False,
    )


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key) or ""
    if not isinstance(value, str):
        raise ConfigError(f"`{key}` is a text.")
    return value


def _handles(values: Mapping[Any, Any]) -> dict[str, str]:
    """References in the one form that is used here."""
    return {
        str(name): HANDLE.sub(
            lambda found: f"${{{found[1]}:-{found[2]}}}" if found[2] else f"${{secret:{found[1]}}}", str(value)
        )
        for name, value in values.items()
    }


def _without_comments(content: bytes) -> bytes:
    """JSON without lines that are comments, as VS Code writes them."""
    return b"\n".join(line for line in content.split(b"\n") if not line.lstrip().startswith(b"//"))
