"""Settings sections of the built-in tools."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import section, setting
from hermes_agent.sandbox.settings import ContainerSettings, SingularitySettings, SshSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    """Settings of shell commands (section `terminal`)."""

    place: Literal["local", "docker", "ssh", "singularity"] = setting(
        "local", "Where commands run: this machine, a container, or another machine."
    )
    jail: Literal["auto", "any", "bubblewrap", "landlock", "seatbelt", "none"] = setting(
        "auto",
        "The wall around commands: they see the system and tool chains read-only and write only to the workspace."
        " auto: the strongest that works here, else none and more questions; any: the same, else nothing runs.",
    )
    network: Literal["proxy", "on", "off"] | bool | tuple[str, ...] = setting(
        "proxy",
        "What commands in a jail reach. proxy: public web sites, noted; a list: only these hosts (globs, `host:port`);"
        " on (or true): everything, unwatched; off (or false): only servers of their own session.",
    )
    readable: tuple[str, ...] = setting((), "Folders besides the system that commands in a jail may read.")
    writable: tuple[str, ...] = setting((), "Folders besides the workspace that commands in a jail may write to.")
    processes: int = setting(512, "Processes that commands in a jail may have at a time.", least=16)
    memory_mb: int = setting(0, "Megabytes of memory for commands in a jail. 0: half of the machine's.", least=0)
    session_mb: int = setting(
        8192,
        "Megabytes that /tmp and ~ of a session in a jail may hold before its commands end. 0: any.",
        least=0,
    )
    timeout: int = setting(180, "Default timeout of a command, in seconds.", least=1)
    max_timeout: int = setting(600, "Longest timeout of a command in the foreground, in seconds.", least=1)
    max_output_mb: int = setting(1000, "Megabytes that one command may write before it is ended.", least=1)
    env_passthrough: tuple[str, ...] = setting((), "Variables that commands see although they look like secrets.")
    docker: ContainerSettings = section(ContainerSettings, "Containers.")
    ssh: SshSettings = section(SshSettings, "Another machine.")
    singularity: SingularitySettings = section(SingularitySettings, "Apptainer or Singularity.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSettings:
    """Settings of `execute_code` (section `code`)."""

    timeout: int = setting(300, "Seconds that one program may take.", least=1)
    max_calls: int = setting(50, "Tools that one program may call.", least=1)
    max_output: int = setting(50_000, "Bytes that one program may print before it is ended.", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutputSettings:
    """Size limits of tool results (section `tool_output`); larger ones are saved and shown as head and tail."""

    max_bytes: int = setting(50_000, "Most bytes of one tool result for the model.", least=1)
    max_lines: int = setting(2000, "Most lines of one tool result for the model.", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSettings:
    """Settings of approvals (section `approvals`)."""

    mode: Literal["ask", "smart", "off"] = setting(
        "ask",
        "ask: dangerous calls wait for approval; smart: the auxiliary model may allow or refuse them first;"
        " off: only the hard block and the deny list hold.",
    )
    own_source: bool = setting(False, "Whether the agent may work on this program's own source.")
    deny: tuple[str, ...] = setting((), "Calls that are always refused, as globs: `git push*`, `write_file:*/prod/*`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """Where one secret may be sent (section `secrets.NAME`); its value is in `.env`."""

    hosts: tuple[str, ...] = setting((), "Hosts that it may be sent to, as globs.")
    commands: tuple[str, ...] = setting((), "Commands or tools that may have it, as globs.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailSettings:
    """Settings of loop detection in a run (section `guardrails`)."""

    warnings: bool = setting(True, "Whether to add guidance to such results.")
    hard_stop: bool = setting(False, "Whether to refuse such calls, and stop the run.")
    warn_repeated_failures: int = setting(2, "Failures of one exact call before guidance.", least=1)
    warn_tool_failures: int = setting(3, "Failures of one tool in a row before guidance.", least=1)
    warn_same_results: int = setting(2, "Equal results of one exact reading call before guidance.", least=1)
    stop_repeated_failures: int = setting(5, "Failures of one exact call before it is refused.", least=1)
    stop_tool_failures: int = setting(8, "Failures of one tool in a row before the run stops.", least=1)
    stop_same_results: int = setting(5, "Equal results of one exact reading call before it is refused.", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings:
    """Settings of file checkpoints (section `checkpoints`)."""

    enabled: bool = setting(True, "Keep a checkpoint before the first change of each turn.")
    keep: int = setting(50, "Checkpoints kept of one folder.", least=1, most=10_000)
    max_file_mb: int = setting(10, "Megabytes beyond which a file is left out.", least=1)
    max_files: int = setting(
        20_000, "In a folder with more files, a checkpoint holds only the files about to change.", least=1
    )
    max_mb: int = setting(500, "Megabytes that the checkpoints of one folder may take.", least=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Settings of the search service (section `web.search`)."""

    backend: Literal["auto", "ddgs", "searxng", "brave", "tavily", "exa", "firecrawl"] = setting(
        "auto",
        "auto: the first of tavily, brave, exa and firecrawl that has a key, searxng where `url` is set,"
        " otherwise ddgs.",
    )
    url: str = setting(
        "", "Address of the server, e.g. http://127.0.0.1:8080 for searxng. Empty: the service's own.", form="address"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Settings of the web tools (section `web`)."""

    search: SearchSettings = section(SearchSettings, "The service behind `web_search`.")
    blocked: tuple[str, ...] = setting(
        (), "Sites never to read, with their subdomains: `example.com`, `*.ads.example`."
    )
    private_hosts: tuple[str, ...] = setting(
        (),
        "Hosts in private networks that may be read all the same, as written in the address: `wiki.lan`,"
        " `127.0.0.1:8080`.",
    )
    timeout: int = setting(30, "Seconds that one page or search may take.", least=1, most=600)
    max_mb: int = setting(10, "Megabytes that one page may have.", least=1, most=200)
