"""The settings of checkpoints."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import about


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings:
    """How files were before the agent changed them (section `checkpoints`)."""

    enabled: bool = field(default=True, metadata={"doc": "Keep a checkpoint before the first change of each turn."})
    keep: int = field(default=50, metadata=about("Checkpoints kept of one folder.", least=1, most=10_000))
    max_file_mb: int = field(default=10, metadata=about("Megabytes beyond which a file is left out.", least=1))
    max_files: int = field(
        default=20_000,
        metadata=about("Files beyond which only those about to be changed are kept of a folder.", least=1),
    )
    max_mb: int = field(default=500, metadata=about("Megabytes that the checkpoints of one folder may take.", least=10))
