"""An editor in tests: the protocol's own client, on the standard input and output of the real program."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import acp
from acp import schema

from hermes_agent.acp.serve import connected
from hermes_agent.host.paths import Home
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from hermes_agent.testing.scripted import Script
from tests.app.place import settle_home
from tests.measured import measured, path_of

Json: TypeAlias = Any
ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from hermes_agent.cli.main import main; sys.exit(main())"
LIMIT = 256 << 20
Decide = Callable[[list[schema.PermissionOption], schema.ToolCallUpdate], str | None]
FORMS = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())


def choosing(option: str) -> Decide:
    return lambda options, _: option if option in {each.option_id for each in options} else None


@dataclass
class Client:
    """What the editor was sent, and what it answers. `decide` gives the option of a permission (None: cancelled)."""

    decide: Decide = field(default_factory=lambda: choosing("once"))
    form: Callable[[Any], dict[str, Any]] | None = None
    buffers: dict[str, str] = field(default_factory=dict)
    updates: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[schema.ToolCallUpdate] = field(default_factory=list)
    options: list[list[str]] = field(default_factory=list)
    withdrawn: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)
    hold: asyncio.Event | None = None

    async def session_update(self, session_id: str, update: Json, **_: Json) -> None:
        self.updates.append((session_id, update))
        self.came.set()

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: Json
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        self.options.append([each.option_id for each in options])
        self.came.set()
        if self.hold is not None:
            await self.hold.wait()
        chosen = self.decide(options, tool_call)
        outcome: Json = schema.DeniedOutcome(outcome="cancelled")
        if chosen is not None:
            outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Json, **_: Json) -> Json:
        assert self.form is not None
        return self.form(mode)

    async def read_text_file(self, session_id: str, path: str, **_: Json) -> schema.ReadTextFileResponse:
        if path not in self.buffers:
            raise acp.RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=self.buffers[path])

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None: ...

    def on_connect(self, conn: Json) -> None: ...

    def of(self, session: str, kind: str = "") -> list[Any]:
        found = [update for name, update in self.updates if name == session]
        return [each for each in found if not kind or each.session_update == kind]

    def text(self, session: str, kind: str = "agent_message_chunk") -> str:
        return "".join(each.content.text for each in self.of(session, kind))

    async def until(self, holds: Callable[[], object], seconds: float = 10) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                self.came.clear()
                await self.came.wait()


@dataclass
class Place:
    """An editor with an agent process on a home."""

    agent: Json
    client: Client
    process: Json
    home: Path
    work: Path
    server: ModelServer | None = None
    said: Json = None

    async def begin(self, cwd: Path | None = None, servers: list[Any] | None = None) -> str:
        made = await self.agent.new_session(cwd=str(cwd or self.work), mcp_servers=servers or [])
        return made.session_id

    async def say(self, session: str, text: str) -> schema.PromptResponse:
        blocks = [schema.TextContentBlock(type="text", text=text)]
        return await self.agent.prompt(session_id=session, prompt=blocks)


def variables(home: Path, **more: str) -> dict[str, str]:
    base = {"PYTHONPATH": path_of(ROOT / "src"), "HERMES_HOME": str(home), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    return {**base, "HOME": os.environ["HOME"], "TZ": "UTC", **measured(), **more}


@asynccontextmanager
async def opened(
    home: Path,
    work: Path,
    client: Client | None = None,
    server: ModelServer | None = None,
    *,
    forms: bool = False,
    buffers: bool = False,
    **more: str,
) -> AsyncIterator[Place]:
    """One agent process, already initialized."""
    client = client or Client()
    words = ("-c", PROGRAM, "acp")
    transport = {"limit": LIMIT, "stderr": sys.stderr, "shutdown_timeout": 4.0}
    async with acp.spawn_agent_process(
        client,
        sys.executable,
        *words,
        env=variables(home, **more),
        cwd=str(work),
        transport_kwargs=transport,
        use_unstable_protocol=True,
    ) as (agent, process):
        said = await agent.initialize(protocol_version=1, client_capabilities=capabilities(forms, buffers))
        yield Place(agent, client, process, home, work, server, said)


@asynccontextmanager
async def near(
    home: Path,
    work: Path,
    client: Client | None = None,
    server: ModelServer | None = None,
    *,
    forms: bool = False,
    buffers: bool = False,
) -> AsyncIterator[Place]:
    """The same agent in this process, behind a pair of sockets: faster than a process of its own."""
    client = client or Client()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        handles = theirs.fileno(), os.dup(theirs.fileno())
        async with connected(Home(root=home, base=home), handles), talking(client, ours) as agent:
            said = await agent.initialize(protocol_version=1, client_capabilities=capabilities(forms, buffers))
            yield Place(agent, client, None, home, work, server, said)
        os.close(handles[1])


@asynccontextmanager
async def talking(client: Client, end: socket.socket) -> AsyncIterator[Json]:
    reader, writer = await asyncio.open_connection(sock=end, limit=LIMIT)
    agent = acp.connect_to_agent(client, writer, reader, use_unstable_protocol=True)
    try:
        yield agent
    finally:
        await agent.close()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def capabilities(forms: bool, buffers: bool) -> schema.ClientCapabilities:
    fs = schema.FileSystemCapabilities(read_text_file=buffers)
    return schema.ClientCapabilities(fs=fs, elicitation=FORMS if forms else None)


@asynccontextmanager
async def editor(
    folder: Path, script: Script, client: Client | None = None, *, more: str = "", process: bool = False, **can: bool
) -> AsyncIterator[Place]:
    """A home, a model server, a working folder, and an editor in front of it; with `process` on the real program."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(folder / "home", server.url, more)
        async with (opened if process else near)(home.root, work, client, server, **can) as place:
            yield place


class Raw:
    """The same program spoken to line by line, over the pipes of a process or what has such."""

    def __init__(self, process: Json) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self.count = 0

    async def send(self, message: Json) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        with suppress(ConnectionError):
            await self.process.stdin.drain()

    async def ask(self, method: str, params: Json, seconds: float = 25) -> Json:
        self.count += 1
        await self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        return await self.answer(self.count, seconds)

    async def next(self, seconds: float = 25) -> Json:
        async with asyncio.timeout(seconds):
            line = await self.process.stdout.readline()
        self.lines.append(line)
        return json.loads(line) if line else None

    async def answer(self, number: object, seconds: float = 25) -> Json:
        async with asyncio.timeout(seconds):
            while (message := await self.next(seconds)) is not None:
                if message.get("id") == number and "method" not in message:
                    return message
        raise AssertionError("the agent is gone")


@asynccontextmanager
async def raw(home: Path, work: Path, without: Collection[str] = (), **more: str) -> AsyncIterator[Raw]:
    """One agent process, line by line, `without` some variables; nothing is initialized."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        "acp",
        env={name: value for name, value in variables(home, **more).items() if name not in without},
        cwd=work,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LIMIT,
    )
    try:
        yield Raw(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def lines(home: Path) -> AsyncIterator[Raw]:
    """The agent in this process, line by line; nothing is initialized."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        handles = theirs.fileno(), os.dup(theirs.fileno())
        async with connected(Home(root=home, base=home), handles):
            reader, writer = await asyncio.open_connection(sock=ours, limit=LIMIT)
            try:
                yield Raw(SimpleNamespace(stdin=writer, stdout=reader))
            finally:
                writer.close()
        os.close(handles[1])
