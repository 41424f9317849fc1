"""The settings of the tools."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import section
from hermes_agent.sandbox.settings import ContainerSettings, SingularitySettings, SshSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    """Commands (section `terminal`)."""

    place: Literal["local", "docker", "ssh", "singularity"] = field(
        default="local", metadata={"doc": "Where commands run: this machine, a container, or another machine."}
    )
    jail: Literal["none", "any", "bubblewrap", "landlock"] = field(
        default="none",
        metadata={
            "doc": "Not none: commands see a read-only system, write to the workspace alone and have no"
            " network. any: by bubblewrap, else by Landlock."
        },
    )
    network: bool = field(
        default=False, metadata={"doc": "Whether commands in a jail or a container reach the network."}
    )
    writable: tuple[str, ...] = field(
        default=(), metadata={"doc": "Folders beside the workspace that commands in a jail may write to."}
    )
    timeout: int = field(default=180, metadata={"doc": "Seconds that a command may take where it does not say."})
    max_timeout: int = field(default=600, metadata={"doc": "Seconds that a command in the foreground may ask for."})
    max_output_mb: int = field(
        default=1000, metadata={"doc": "Megabytes that one command may write before it is ended."}
    )
    env_passthrough: tuple[str, ...] = field(
        default=(), metadata={"doc": "Variables that commands see although they look like secrets."}
    )
    docker: ContainerSettings = section(ContainerSettings, "Containers.")
    ssh: SshSettings = section(SshSettings, "Another machine.")
    singularity: SingularitySettings = section(SingularitySettings, "Apptainer or Singularity.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSettings:
    """Programs of `execute_code` (section `code`)."""

    timeout: int = field(default=300, metadata={"doc": "Seconds that one program may take."})
    max_calls: int = field(default=50, metadata={"doc": "Tools that one program may call."})
    max_output: int = field(default=50_000, metadata={"doc": "Bytes that one program may print before it is ended."})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutputSettings:
    """Size of tool results (section `tool_output`); what is larger is kept on disk and shown as head and tail."""

    max_bytes: int = field(default=50_000, metadata={"doc": "Bytes of one tool result that the model is shown."})
    max_lines: int = field(default=2000, metadata={"doc": "Lines of one tool result that the model is shown."})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSettings:
    """What needs a person's yes (section `approvals`)."""

    mode: Literal["ask", "smart", "off"] = field(
        default="ask",
        metadata={
            "doc": "ask: dangerous calls wait for a yes; smart: the auxiliary model may allow or refuse them first;"
            " off: only the hard block and the deny list hold."
        },
    )
    deny: tuple[str, ...] = field(
        default=(), metadata={"doc": "Calls that are always refused, as globs: `git push*`, `write_file:*/prod/*`."}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """Where one secret may go (section `secrets.NAME`); its value is in `.env`."""

    hosts: tuple[str, ...] = field(default=(), metadata={"doc": "Hosts that it may be sent to, as globs."})
    commands: tuple[str, ...] = field(default=(), metadata={"doc": "Commands or tools that may have it, as globs."})
