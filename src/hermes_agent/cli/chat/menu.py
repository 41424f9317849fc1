"""List of slash commands in the chat: the shared ones, and those of the terminal alone."""

from __future__ import annotations

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import command_of
from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A slash command's menu entry."""

    name: str
    summary: str
    arguments: str = ""


HERE = (
    Name(name="quit", summary="Leave (also Ctrl-D)."),
    Name(name="keys", summary="Show the keys."),
    Name(name="thinking", summary="Show thoughts whole or in short (also Ctrl-T)."),
)
"""What only a terminal has."""


def names() -> list[Name]:
    """All commands."""
    commands = map(command_of, COMMANDS)
    shared = [Name(name=each.name, summary=each.summary, arguments=each.arguments) for each in commands]
    return [*shared, *HERE]


def usage(line: str) -> str:
    """Usage hint of the command that a line begins with; empty if it is none or takes no arguments."""
    word = line[1:].split(maxsplit=1)[0] if line.startswith("/") and line[1:].strip() else ""
    found = next((each for each in names() if each.name == word and each.arguments), None)
    return f"/{found.name} {found.arguments}" if found is not None else ""


def more_help() -> str:
    """Help lines for the terminal's own commands."""
    return "\n".join(f"/{each.name:<12}{each.summary}" for each in HERE)
