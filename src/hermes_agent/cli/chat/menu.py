"""The slash commands that the chat offers: those of every surface, and what only a terminal has."""

from __future__ import annotations

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import command_of
from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A command as the menu shows it."""

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
    """Every command."""
    commands = map(command_of, COMMANDS)
    shared = [Name(name=each.name, summary=each.summary, arguments=each.arguments) for each in commands]
    return [*shared, *HERE]


def usage(line: str) -> str:
    """How the command is used whose name a line begins with; empty where it is none, or takes nothing."""
    word = line[1:].split(maxsplit=1)[0] if line.startswith("/") and line[1:].strip() else ""
    found = next((each for each in names() if each.name == word and each.arguments), None)
    return f"/{found.name} {found.arguments}" if found is not None else ""


def more_help() -> str:
    """The lines of `/help` about what only a terminal has."""
    return "\n".join(f"/{each.name:<12}{each.summary}" for each in HERE)
