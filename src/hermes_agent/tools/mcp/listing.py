"""How a server is reached, what it lists and how it fails; what it listed becomes tools, or is quarantined."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Protocol

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.messages import Origin, ToolSchema
from hermes_agent.core.records import revive, with_texts
from hermes_agent.core.tool import Answer, CallContext, CallFacts
from hermes_agent.store.mcp.catalogue import McpPrompt, McpTool
from hermes_agent.tools.mcp.questions import DEEPEST, LARGEST_SCHEMA, Exchange, is_bounded
from hermes_agent.tools.mcp.settings import McpServerSettings, Server

LONGEST_NAME, LONGEST_SAID = 64, 200
"""Characters of a name for a model, and of one that a server says."""
MOST_DESCRIBED = 4_000
SUMMARY_CHARS = 100
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 60.0
"""Seconds before something is tried again that a server ended or repeats: each pause is twice the one before."""
TOO_LARGE = f"its parameters are larger than {LARGEST_SCHEMA:,} characters, or nested more than {DEEPEST} deep"
NAMES_SECRET = "its name holds a secret"
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
Fits = Callable[[ToolSchema], str]
"""Why no dialect's model could be offered the tool; empty: each could."""
Streams = tuple[Any, Any]
"""What the SDK reads from and writes to."""


class Lost(HermesError):
    """The connection is gone; the text says why. `unsent`: the server got nothing of the last request."""

    def __init__(self, why: str, *, unsent: bool = False) -> None:
        super().__init__(why)
        self.unsent = unsent


class Malformed(ToolError):
    """What a server answered is not what the protocol, or its own schema, says."""

    kind = "malformed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a server offers, as it said. `version` is the protocol's."""

    version: str
    title: str
    tools: tuple[McpTool, ...]
    prompts: tuple[McpPrompt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How to connect: `streams` opens the transport, and is told what to call once it has ended; `changed` is called
    with the address of a resource that changed, or nothing where the server's lists did; `is_alive`: whether its
    program, if it has one, still runs; `redact` takes secrets out of what is told of its words. `sample` asks the
    model for a server (None: it may not), with the question's instructions and text; raises `HermesError`."""

    server: Server
    workspace: str
    streams: Callable[[Callable[[str], None]], AbstractAsyncContextManager[Streams]]
    changed: Callable[[str], None]
    is_alive: Callable[[], bool]
    redact: Callable[[str], str]
    sample: Callable[[Exchange, str, str], Awaitable[str]] | None = None


class Calls(Protocol):
    """Calls a tool of a server. Raises `ToolError`."""

    async def call(
        self, server: Server, tool: McpTool, arguments: Mapping[str, Any], context: CallContext
    ) -> Answer: ...


def tool_name(server: str, name: str) -> str:
    """The name by which a model calls a server's tool: `mcp__server__name`, with a hash where that does not fit, or
    where another server could have the same."""
    whole = f"mcp__{server}__{name}"
    safe = _UNSAFE.sub("_", whole)
    is_clear = "__" not in server and not server.endswith("_")
    if safe == whole and len(safe) <= LONGEST_NAME and is_clear:
        return safe
    whole = f"{server}\0{name}"
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe[: LONGEST_NAME - 9]}_{digest}"


def hidden(found: Listing, redact: Callable[[str], str]) -> Listing:
    """The listing without secrets; a tool whose name held one is quarantined."""
    plain, texts = msgspec.to_builtins(found), list[str]()
    with_texts(plain, texts.append, keys=True)
    if redact(whole := "\n".join(texts)) == whole:
        return found
    clean: Listing = revive(Listing, with_texts(plain, redact, keys=True))
    tools = zip(clean.tools, found.tools, strict=True)
    return replace(
        clean, tools=tuple(new if new.name == old.name else replace(new, why=NAMES_SECRET) for new, old in tools)
    )


def judged(server: Server, tools: Sequence[McpTool], fits: Fits) -> tuple[McpTool, ...]:
    """The tools with what speaks against each (`why`)."""
    seen: set[str] = set()
    found = []
    for tool in tools:
        why = tool.why or _wrong_with(server, tool, seen, fits)
        seen.add(tool.name)
        name = (tool.name if tool.name.isprintable() else ascii(tool.name))[:LONGEST_SAID]
        parameters, description = {} if why else tool.parameters, tool.description[:MOST_DESCRIBED]
        found.append(replace(tool, name=name, description=description, parameters=parameters, why=why))
    return tuple(found)


def _wrong_with(server: Server, tool: McpTool, seen: set[str], fits: Fits) -> str:
    if not tool.name or not tool.name.isprintable() or len(tool.name) > LONGEST_SAID:
        return "its name is empty, too long, or holds control characters"
    if tool.name in seen:
        return "another tool of this server has the same name"
    if not is_bounded(tool.parameters):
        return TOO_LARGE
    return fits(ToolSchema(name=tool_name(server.name, tool.name), description="-", parameters=tool.parameters))


def is_offered(settings: McpServerSettings, name: str) -> bool:
    """Whether the settings let the tool be offered."""
    include, exclude = settings.tools.include, settings.tools.exclude
    return (not include or _matches(name, include)) and not _matches(name, exclude)


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def effect_of(settings: McpServerSettings, tool: McpTool) -> Effect:
    """What a call of the tool does: as the owner says, else as the server says where the owner trusts it. Else it
    writes, or is found again as a task where the server has these."""
    if tool.name in settings.effects:
        return Effect(settings.effects[tool.name])
    if tool.reads and settings.trust == "hints":
        return Effect.READS
    return Effect.EXEC if tool.tasks else Effect.WRITES


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """A tool of a server; implements `Tool`. What it says is outside text, also its description."""

    server: Server
    tool: McpTool
    calls: Calls
    core = False
    needs = frozenset({Capability.MCP})

    @property
    def schema(self) -> ToolSchema:
        name = tool_name(self.server.name, self.tool.name)
        return ToolSchema(name=name, description=self.tool.description, parameters=self.tool.parameters)

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:  # noqa: ARG002 - the Protocol's shape
        said = " ".join(f"{name}={value!r}" for name, value in arguments.items())
        return CallFacts(
            effect=effect_of(self.server.settings, self.tool),
            paths=() if self.server.settings.parallel else None,
            summary=f"{self.server.name} {self.tool.name}: {said}"[:SUMMARY_CHARS],
            origin=Origin.TOOL,
        )

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        return await self.calls.call(self.server, self.tool, arguments, context)
