"""The settings of each kind of place."""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes_agent.host.schema import about


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings:
    """Containers (section `terminal.docker`)."""

    image: str = field(default="debian:12-slim", metadata=about("The image; it needs `sh` and the usual programs."))
    command: tuple[str, ...] = field(
        default=(), metadata=about("The program with its first arguments. Empty: docker, else podman.")
    )
    arguments: tuple[str, ...] = field(default=(), metadata=about("More arguments of its `run`."))
    capabilities: tuple[str, ...] = field(
        default=(), metadata=about("Capabilities that are not dropped, e.g. NET_BIND_SERVICE.")
    )
    memory_mb: int = field(default=2048, metadata=about("Megabytes of memory, swap included.", least=16))
    cpus: float = field(default=2.0, metadata=about("Processors.", least=0.01))
    processes: int = field(default=512, metadata=about("Processes at a time.", least=8))
    tmp_mb: int = field(default=512, metadata=about("Megabytes of /tmp, and of each other folder in memory.", least=1))
    idle_hours: float = field(
        default=24.0, metadata=about("Hours after which a container that nobody used is removed.", least=0.0)
    )
