"""What a tool does to the world: one declaration that drives parallelism, approval, recovery and the audit."""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """What may happen to a call that was interrupted.

    - `reads`: changes nothing; runs again, and beside other reads;
    - `keyed`: carries an idempotency key; runs again with the same key;
    - `exec`: runs detached under an id; is attached to again, never started twice;
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
