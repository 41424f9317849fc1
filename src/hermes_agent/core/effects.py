"""What a tool does to the world: one declaration that drives parallelism, approval, recovery and the audit."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.dataclass import dataclass


class Effect(StrEnum):
    """What may happen to a call that was interrupted.

    - `reads`: changes nothing; runs again, and beside other reads;
    - `keyed`: carries an idempotency key; runs again with the same key;
    - `exec`: runs detached under an id; is attached to again, never started twice; where its record is not found, only
      the `Location` of its intent may take it for one that never began;
    - `writes`: intent is committed first; an interrupted one is reported as "outcome unknown", never run again;
    - `asks`: waits for a person; is asked again.
    """

    READS = "reads"
    KEYED = "keyed"
    EXEC = "exec"
    WRITES = "writes"
    ASKS = "asks"


class Capability(StrEnum):
    """What a tool needs from its surroundings. A principal, surface or child is granted a set of these."""

    FS_READ = "fs.read"
    FS_WRITE = "fs.write"
    EXEC = "exec"
    NET = "net"
    MESSAGE = "message"
    SCHEDULE = "schedule"
    MEMORY = "memory"
    SKILLS = "skills"
    SPAWN = "spawn"


class EffectState(StrEnum):
    """Where an effect record stands: the intent is committed, or it has a result."""

    INTENT = "intent"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where the record of an `exec` effect is kept: a name of the machine for people, the kind of place with its store
    of records, and the boot. A missing record means "not begun" at the same location alone: another machine or home has
    none, a boot may have lost some, and a store from which records were removed has another name."""

    machine: str = ""
    place: str = ""
    boot: str = ""


NOWHERE = Location()
