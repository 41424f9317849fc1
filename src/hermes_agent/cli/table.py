"""Every subcommand: where it is, and what it is for."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "completion": "hermes_agent.cli.commands.completion:completion",
    "config": "hermes_agent.cli.commands.config:config",
    "demo": "hermes_agent.cli.commands.demo:demo",
}

SUMMARIES: dict[str, str] = {
    "completion": "Print the completion script of a shell.",
    "config": "Read and change the settings.",
    "demo": "Show the program at work, without a key.",
}
