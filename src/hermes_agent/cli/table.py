"""Every subcommand: where it is, and what it is for."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "completion": "hermes_agent.cli.commands.completion:completion",
    "config": "hermes_agent.cli.commands.config:config",
}

SUMMARIES: dict[str, str] = {
    "completion": "Print the completion script of a shell.",
    "config": "Read and change the settings.",
}
