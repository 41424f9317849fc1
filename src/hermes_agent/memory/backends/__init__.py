"""External memories: a table from the name of each to the function that creates it."""

from __future__ import annotations

BACKENDS: dict[str, str] = {
    "holographic": "hermes_agent.memory.backends.holographic:make",
    "honcho": "hermes_agent.memory.backends.rest:honcho",
    "mem0": "hermes_agent.memory.backends.rest:mem0",
    "hindsight": "hermes_agent.memory.backends.rest:hindsight",
    "supermemory": "hermes_agent.memory.backends.rest:supermemory",
    "retaindb": "hermes_agent.memory.backends.rest:retaindb",
    "byterover": "hermes_agent.memory.backends.byterover:make",
    "openviking": "hermes_agent.memory.backends.openviking:make",
}
"""Name of a backend -> where it is made."""

TOOLS: dict[str, str] = {"holographic": "hermes_agent.memory.backends.holographic:FactTools"}
"""Tools that a backend has beside those that each of them has."""
