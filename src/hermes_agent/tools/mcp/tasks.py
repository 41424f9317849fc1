"""Tasks: calls with which a server goes on after its answer (extension `io.modelcontextprotocol/tasks`). Needs the
extra `mcp`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import mcp_types as types
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import Field

from hermes_agent.core.errors import OutcomeUnknown, ToolError
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.tools.mcp.questions import current

TASKS = "io.modelcontextprotocol/tasks"
SOONEST, USUAL, LATEST = 50, 1_000, 10_000
"""Milliseconds between two looks at a task: at least, where its server names none, and at most."""
GONE = (types.INVALID_PARAMS, types.METHOD_NOT_FOUND, types.MISSING_REQUIRED_CLIENT_CAPABILITY)
"""What a server answers that does not know a task, or no tasks any more."""


class _Begun(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str = Field(min_length=1, max_length=1_000)


class _State(types.Result):
    status: Literal["working", "input_required", "completed", "cancelled", "failed"]
    status_message: str | None = None
    poll_interval_ms: float | None = None
    input_requests: types.InputRequests | None = None
    result: dict[str, Any] | None = None
    error: types.ErrorData | None = None


class _Params(types.RequestParams):
    task_id: str
    input_responses: types.InputResponses | None = None


class _Request(types.Request[_Params, str]):
    name_param = "taskId"


class Tasks(ClientExtension):
    """Says that a task may be answered, and follows one to its end."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """See the SDK."""
        return [ResultClaim(result_type="task", model=_Begun, resolve=_begun)]


async def _begun(begun: _Begun, context: ClaimContext) -> types.CallToolResult:
    if (exchange := current.get()) is not None:
        await exchange.context.hold(begun.task_id)
    return await _followed(context.session, begun.task_id)


async def follow_task(client: Client, tool: str, task: str) -> types.CallToolResult:
    """The result of a task that an earlier process began. Raises `OutcomeUnknown` where its server knows it no more."""
    result = await _followed(client.session, task)
    if not result.is_error:
        await client.session.validate_tool_result(tool, result)
    return result


async def end_task(client: Client, task: str) -> None:
    """Ask the server to end a task."""
    await _ask(client.session, "cancel", task, types.EmptyResult)


async def _ask(session: ClientSession, verb: str, task: str, kind: type[Any], **more: Any) -> Any:  # noqa: ANN401 - a result of the SDK
    request = _Request(method=f"tasks/{verb}", params=_Params(task_id=task, **more))
    return await session.send_request(request, kind)


async def _followed(session: ClientSession, task: str) -> types.CallToolResult:
    exchange, answered, shown = current.get(), set[str](), ""
    while True:
        try:
            state: _State = await _ask(session, "get", task, _State)
        except MCPError as error:
            if error.code not in GONE:
                raise
            said = Quoted(text=error.message, origin=Origin.TOOL)
            raise OutcomeUnknown("Whether the task was done is unknown, its server says:", quoted=said) from error
        if exchange is not None:
            exchange.extend()
            if state.status_message and state.status_message != shown:
                shown = state.status_message
                exchange.context.progress(shown[:200])
        if state.status not in ("working", "input_required"):
            return _result_of(state)
        news = {key: each for key, each in (state.input_requests or {}).items() if key not in answered}
        if news:
            answered |= news.keys()
            await _ask(session, "update", task, types.EmptyResult, input_responses=await _answers(session, task, news))
        await asyncio.sleep(max(SOONEST, min(state.poll_interval_ms or USUAL, LATEST)) / 1000)


def _result_of(state: _State) -> types.CallToolResult:
    if state.status == "completed":
        return types.CallToolResult.model_validate(state.result or {}, by_name=False)
    if state.error is not None:
        raise MCPError.from_error_data(state.error)
    said = Quoted(text=(state.status_message or state.status)[:1000], origin=Origin.TOOL)
    raise ToolError("The server ended the task before it was done:", quoted=said)


async def _answers(session: ClientSession, task: str, asked: types.InputRequests) -> types.InputResponses:
    """What the server asks meanwhile, answered as during a call. Ends the task where something may not be asked."""
    found: types.InputResponses = {}
    for key, request in asked.items():
        context = ClientRequestContext(session=session, request_id=key)
        answer = await session.dispatch_input_request(context, request)
        if isinstance(answer, types.ErrorData):
            await _ask(session, "cancel", task, types.EmptyResult)
            raise MCPError.from_error_data(answer)
        found[key] = answer
    return found
