"""Settings of each kind of place."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting

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
    """Settings of containers (section `terminal.docker`)."""

    image: str = setting("debian:12-slim", "The image; it needs `sh` and the usual programs.")
    command: tuple[str, ...] = setting((), "The program with its first arguments. Empty: docker, else podman.")
    arguments: tuple[str, ...] = setting((), "More arguments of its `run`.")
    capabilities: tuple[str, ...] = setting((), "Capabilities to keep, e.g. NET_BIND_SERVICE.")
    memory_mb: int = setting(2048, "Megabytes of memory, swap included.", least=16)
    cpus: float = setting(2.0, "Processors.", least=0.01)
    processes: int = setting(512, "Processes at a time.", least=8)
    tmp_mb: int = setting(512, "Megabytes of /tmp, and of each other folder in memory.", least=1)
    idle_hours: float = setting(24.0, "Hours after which an unused container is removed.", least=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """Settings of another machine over SSH (section `terminal.ssh`)."""

    host: str = setting("", "Its name or address; a name of ~/.ssh/config will do.")
    port: int = setting(0, "Its port; 0 is that of ~/.ssh/config, or 22.", least=0, most=65535)
    user: str = setting("", "The account there; empty: that of ~/.ssh/config, or your name.")
    key: str = setting("", "The file of the private key; empty: those that ssh would try.")
    known_hosts: str = setting("", "The file of known hosts; empty: ~/.ssh/known_hosts.")

    sync: bool = setting(True, "Copy the session's files there before a command, and back after.")
    folder: str = setting("", "Parent of the sessions' folders on that machine; empty: their own path.")
    exclude: tuple[str, ...] = setting(NOT_COPIED, "Globs for files and folders not to copy.")
    max_file_mb: int = setting(20, "Megabytes beyond which a file is not copied.", least=1)
    max_files: int = setting(20_000, "Files beyond which a folder is not copied.", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingularitySettings:
    """Settings of Apptainer or Singularity (section `terminal.singularity`)."""

    image: str = setting("", "The image: a file (.sif), a folder, or docker://...")
    command: tuple[str, ...] = setting((), "The program with its first arguments. Empty: apptainer, else singularity.")
    arguments: tuple[str, ...] = setting((), "More arguments of its `instance start`.")
