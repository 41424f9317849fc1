"""Interactive terminal chat: `hermes` without a subcommand."""

from __future__ import annotations

from hermes_agent.cli.chat.begin import run as run
