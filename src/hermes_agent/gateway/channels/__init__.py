"""Every channel: where its record is. Loaded when it is switched on."""

from __future__ import annotations

CHANNELS: dict[str, str] = {}
"""Name of a channel -> its `channel.py` `Kind`."""
