"""The settings of the tools."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import section, setting
from hermes_agent.sandbox.settings import ContainerSettings, SingularitySettings, SshSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    """Commands (section `terminal`)."""

    place: Literal["local", "docker", "ssh", "singularity"] = setting(
        "local", "Where commands run: this machine, a container, or another machine."
    )
    jail: Literal["none", "any", "bubblewrap", "landlock"] = setting(
        "none",
        "In a jail, commands see a read-only system, write only to the workspace and have no"
        " network. any: bubblewrap, else Landlock.",
    )
    network: bool = setting(False, "Whether commands in a jail or a container reach the network.")
    writable: tuple[str, ...] = setting((), "Folders besides the workspace that commands in a jail may write to.")
    timeout: int = setting(180, "Default timeout of a command, in seconds.")
    max_timeout: int = setting(600, "Longest timeout of a command in the foreground, in seconds.")
    max_output_mb: int = setting(1000, "Megabytes that one command may write before it is ended.")
    env_passthrough: tuple[str, ...] = setting((), "Variables that commands see although they look like secrets.")
    docker: ContainerSettings = section(ContainerSettings, "Containers.")
    ssh: SshSettings = section(SshSettings, "Another machine.")
    singularity: SingularitySettings = section(SingularitySettings, "Apptainer or Singularity.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSettings:
    """Programs of `execute_code` (section `code`)."""

    timeout: int = setting(300, "Seconds that one program may take.")
    max_calls: int = setting(50, "Tools that one program may call.")
    max_output: int = setting(50_000, "Bytes that one program may print before it is ended.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutputSettings:
    """Size of tool results (section `tool_output`); what is larger is kept on disk and shown as head and tail."""

    max_bytes: int = setting(50_000, "Most bytes of one tool result for the model.")
    max_lines: int = setting(2000, "Most lines of one tool result for the model.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSettings:
    """What needs a person's yes (section `approvals`)."""

    mode: Literal["ask", "smart", "off"] = setting(
        "ask",
        "ask: dangerous calls wait for approval; smart: the auxiliary model may allow or refuse them first;"
        " off: only the hard block and the deny list hold.",
    )
    own_source: bool = setting(False, "Whether the agent may work on this program's own source.")
    deny: tuple[str, ...] = setting((), "Calls that are always refused, as globs: `git push*`, `write_file:*/prod/*`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """Where one secret may go (section `secrets.NAME`); its value is in `.env`."""

    hosts: tuple[str, ...] = setting((), "Hosts that it may be sent to, as globs.")
    commands: tuple[str, ...] = setting((), "Commands or tools that may have it, as globs.")
