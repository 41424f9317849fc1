"""The settings of checkpoints."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings:
    """How files were before the agent changed them (section `checkpoints`)."""

    enabled: bool = setting(True, "Keep a checkpoint before the first change of each turn.")
    keep: int = setting(50, "Checkpoints kept of one folder.", least=1, most=10_000)
    max_file_mb: int = setting(10, "Megabytes beyond which a file is left out.", least=1)
    max_files: int = setting(
        20_000, "In a folder with more files, a checkpoint holds only the files about to change.", least=1
    )
    max_mb: int = setting(500, "Megabytes that the checkpoints of one folder may take.", least=10)
