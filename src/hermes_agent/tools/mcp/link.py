"""What a connection is to those who use it: how it is made, what it lists, and how it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.store.mcp.catalogue import McpPrompt, McpTool
from hermes_agent.tools.mcp.questions import Exchange
from hermes_agent.tools.mcp.settings import Server

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
    when the server says that its tools changed; `is_alive`: whether its program, if it has one, still runs; `redact`
    takes secrets out of what is kept of its words. `sample` asks the model for a server (None: it may not), with the
    question's instructions and text; raises `HermesError`."""

    server: Server
    workspace: str
    streams: Callable[[Callable[[str], None]], AbstractAsyncContextManager[Streams]]
    changed: Callable[[], None]
    is_alive: Callable[[], bool]
    redact: Callable[[str], str]
    sample: Callable[[Exchange, str, str], Awaitable[str]] | None = None
