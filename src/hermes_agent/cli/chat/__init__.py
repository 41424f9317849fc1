"""The chat: `hermes` without a command."""

from __future__ import annotations

from hermes_agent.cli.chat.begin import run as run
