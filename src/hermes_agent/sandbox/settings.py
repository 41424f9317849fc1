"""The settings of each kind of place."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import about

# What is made again rather than copied.
NOT_COPIED = (
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    "target",
    ".gradle",
    ".next",
    ".tox",
    ".*_cache",
    ".DS_Store",
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """Another machine (section `terminal.ssh`)."""

    host: str = field(default="", metadata=about("Its name or address; a name of ~/.ssh/config will do."))
    port: int = field(default=0, metadata=about("Its port; 0 is that of ~/.ssh/config, or 22.", least=0, most=65535))
    user: str = field(default="", metadata=about("The account there; empty: that of ~/.ssh/config, or your name."))
    key: str = field(default="", metadata=about("The file of the private key; empty: those that ssh would try."))
    known_hosts: str = field(default="", metadata=about("The file of known hosts; empty: ~/.ssh/known_hosts."))

    sync: bool = field(default=True, metadata=about("Copy the session's files there before a command, and back after."))
    folder: str = field(
        default="", metadata=about("A folder there, below which sessions' folders are; empty: under their own path.")
    )
    exclude: tuple[str, ...] = field(default=NOT_COPIED, metadata=about("Globs for files and folders not to copy."))
    max_file_mb: int = field(default=20, metadata=about("Megabytes beyond which a file is not copied.", least=1))
    max_files: int = field(default=20_000, metadata=about("Files beyond which a folder is not copied.", least=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SingularitySettings:
    """Apptainer or Singularity (section `terminal.singularity`)."""

    image: str = field(default="", metadata=about("The image: a file (.sif), a folder, or docker://..."))
    command: tuple[str, ...] = field(
        default=(), metadata=about("The program with its first arguments. Empty: apptainer, else singularity.")
    )
    arguments: tuple[str, ...] = field(default=(), metadata=about("More arguments of its `instance start`."))
