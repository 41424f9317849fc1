"""Effects of tool calls: parallel, approved, retried? Also a tool's capabilities and where an effect is recorded."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.dataclass import dataclass


class Effect(StrEnum):
    """Effect class of a tool call, which decides what happens to an interrupted one.

    - `reads`: changes nothing; is retried, and runs in parallel with other reads;
    - `keyed`: carries an idempotency key; is retried with the same key;
    - `exec`: runs detached under an id; is re-attached, never started twice. Where its record is missing, only the
      `Location` of its intent can tell that it never started;
    - `writes`: the intent is committed first; an interrupted call is reported as "outcome unknown" and never retried;
    - `asks`: waits for a person; the question is asked again.
    """

    READS = "reads"
    KEYED = "keyed"
    EXEC = "exec"
    WRITES = "writes"
    ASKS = "asks"


class Capability(StrEnum):
    """A permission that a tool needs (network, files, commands ...). Principals, surfaces and child agents get a set
    of them."""

    FS_READ = "fs.read"
    FS_WRITE = "fs.write"
    EXEC = "exec"
    NET = "net"
    MESSAGE = "message"
    SCHEDULE = "schedule"
    MEMORY = "memory"
    SKILLS = "skills"
    SPAWN = "spawn"
    MCP = "mcp"


class EffectState(StrEnum):
    """State of an effect record: the intent is committed, or it has a result."""

    INTENT = "intent"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where the record of an `exec` effect is stored: a machine name for people, the kind of place with its record
    store, and the boot id. A missing record means "not started" only at the same location: another machine or home has
    no record of it, a reboot may have removed some, and a store that was cleaned gets a new name. `handle` is the name
    of the record, where another program gave it."""

    machine: str = ""
    place: str = ""
    boot: str = ""
    handle: str = ""


NOWHERE = Location()
