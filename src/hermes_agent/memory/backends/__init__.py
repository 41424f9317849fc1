"""The memories that can be used beside the notes, one file each: a name leads to the function that makes one."""

from __future__ import annotations

BACKENDS: dict[str, str] = {
    "holographic": "hermes_agent.memory.backends.holographic:make",
    "honcho": "hermes_agent.memory.backends.honcho:make",
    "mem0": "hermes_agent.memory.backends.mem0:make",
    "hindsight": "hermes_agent.memory.backends.hindsight:make",
    "supermemory": "hermes_agent.memory.backends.supermemory:make",
    "retaindb": "hermes_agent.memory.backends.retaindb:make",
    "byterover": "hermes_agent.memory.backends.byterover:make",
    "openviking": "hermes_agent.memory.backends.openviking:make",
}
"""Name of a backend -> where it is made."""

TOOLS: dict[str, str] = {"holographic": "hermes_agent.memory.backends.holographic:FactTools"}
"""Tools that a backend has beside those that each of them has."""
