"""The person of this machine."""

from __future__ import annotations

import getpass

from hermes_agent.core.inbound import Principal, Standing


def local_owner() -> Principal:
    """Whoever runs this process: the owner."""
    return Principal(platform="cli", user=getpass.getuser(), standing=Standing.OWNER)
