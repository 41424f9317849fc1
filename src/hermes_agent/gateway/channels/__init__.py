"""Table of all channels by name; each is loaded when enabled."""

from __future__ import annotations

CHANNELS: dict[str, str] = {
    "discord": "hermes_agent.gateway.channels.discord:CHANNEL",
    "email": "hermes_agent.gateway.channels.email:CHANNEL",
    "matrix": "hermes_agent.gateway.channels.matrix:CHANNEL",
    "ntfy": "hermes_agent.gateway.channels.ntfy:CHANNEL",
    "slack": "hermes_agent.gateway.channels.slack:CHANNEL",
    "telegram": "hermes_agent.gateway.channels.telegram:CHANNEL",
}
"""Name of a channel -> its `channel.py` `Kind`."""
