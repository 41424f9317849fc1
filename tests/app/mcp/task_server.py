"""A server with tasks for the tests, by the official SDK's low-level parts: `task_server.py FOLDER [PORT]`.

In FOLDER stand the lines `starts` and `looks` (a task each), `ends` (those that were cancelled) and `offers` (what the
client said of itself). Tasks are files there, so that another process of the server knows them too. `bare`: it has no
tasks."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

TASKS = "io.modelcontextprotocol/tasks"
FOLDER = Path(sys.argv[1])
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def note(file: str, line: str) -> None:
    with (FOLDER / file).open("a") as out:
        out.write(f"{line}\n")


class Params(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class State(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    result_type: Literal["task", "complete"] = "complete"
    task_id: str
    status: str = "working"
    created_at: str = "2026-01-01T00:00:00Z"
    last_updated_at: str = "2026-01-01T00:00:00Z"
    ttl_ms: int | None = None
    poll_interval_ms: int = 50


def kept(task: str) -> tuple[Path, dict[str, Any]]:
    path = FOLDER / f"{task}.json"
    if not path.exists():
        raise MCPError(types.INVALID_PARAMS, "Task not found")
    return path, json.loads(path.read_text())


class Tasks(Extension):
    identifier = TASKS

    def methods(self) -> Sequence[MethodBinding]:
        calls = {"get": self.get, "update": self.update, "cancel": self.cancel}
        return [MethodBinding(f"tasks/{verb}", Params, call) for verb, call in calls.items()]

    async def intercept_tool_call(
        self, params: types.CallToolRequestParams, ctx: ServerRequestContext, call_next: CallNext
    ) -> HandlerResult:
        if params.name == "quick":
            return await call_next(ctx)
        task, given = uuid.uuid4().hex, params.arguments or {}
        facts = {"until": time.time() + given.get("seconds", 0.3), "tool": params.name, "given": given}
        (FOLDER / f"{task}.json").write_text(json.dumps(facts))
        note("starts", task)
        return State(result_type="task", task_id=task).model_dump(by_alias=True)

    async def get(self, ctx: object, params: Params) -> HandlerResult:
        _, facts = kept(params.task_id)
        note("looks", params.task_id)
        return State(task_id=params.task_id, **self.stands(facts)).model_dump(by_alias=True)

    def stands(self, facts: dict[str, Any]) -> dict[str, Any]:
        if facts.get("cancelled"):
            return {"status": "cancelled"}
        if facts["tool"] == "ask" and "answer" not in facts:
            asked = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": FORM}}
            return {"status": "input_required", "inputRequests": {"q1": asked}}
        if time.time() < facts["until"]:
            return {"status": "working", "statusMessage": "working on it"}
        if facts["tool"] == "fail":
            return {"status": "failed", "error": {"code": -32603, "message": "it is broken"}}
        said = facts.get("answer") or f"did {facts['given'].get('name', 'it')}"
        content = [{"type": "text", "text": said}]
        return {"status": "completed", "result": {"content": content, "structuredContent": {"result": said}}}

    async def update(self, ctx: object, params: Params) -> HandlerResult:
        path, facts = kept(params.task_id)
        facts["answer"] = json.dumps((params.input_responses or {})["q1"])
        path.write_text(json.dumps(facts))
        return {"resultType": "complete"}

    async def cancel(self, ctx: object, params: Params) -> HandlerResult:
        path, facts = kept(params.task_id)
        path.write_text(json.dumps({**facts, "cancelled": True}))
        note("ends", params.task_id)
        return {"resultType": "complete"}


server = MCPServer("tasks", extensions=[] if "bare" in sys.argv else [Tasks()])


@server.tool()
def work(context: Context, seconds: float = 0.3, name: str = "it") -> str:
    """Work for a while."""
    able = context.request_context.session.client_capabilities
    note("offers", str(able and able.extensions))
    return f"did {name} at once"


@server.tool()
def ask() -> str:
    """Ask who is there."""
    return "nobody was asked"


@server.tool()
def fail() -> str:
    """Fail later."""
    return "did not fail"


@server.tool()
def quick() -> str:
    """Answer at once."""
    return "done"


if __name__ == "__main__":
    ports = [int(word) for word in sys.argv[2:] if word.isdigit()]
    if ports:
        server.run("streamable-http", port=ports[0], host="127.0.0.1")
    else:
        server.run("stdio")
