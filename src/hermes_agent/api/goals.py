"""Endpoints `/v1/goals`: set, list, show, change and check goals."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing, asks
from hermes_agent.api.problems import missing
from hermes_agent.api.response_schemas import list_of
from hermes_agent.app.operations import goals as operations
from hermes_agent.app.operations.goals import GoalFacts, State, Wish, criterion_of
from hermes_agent.core.errors import HermesError


class CriterionRequest(msgspec.Struct, kw_only=True):
    """A criterion of a goal that is set; a file is `PATH`, `PATH contains TEXT` or `PATH sha256 HEX`."""

    kind: Literal["command", "file", "board", "judge"]
    text: Annotated[str, msgspec.Meta(min_length=1)]


class GoalRequest(msgspec.Struct, kw_only=True):
    """Body of a request that sets a goal. `session` pursues it; without one it is only written down. `money` is in US
    dollars; `anyway` begins it although its criteria hold."""

    text: str
    session: str = ""
    criteria: list[CriterionRequest] = []
    constraints: list[str] = []
    turns: int | None = None
    money: float | None = None
    tokens: int | None = None
    anyway: bool = False


class GoalChange(msgspec.Struct, kw_only=True):
    """Body of a change of a goal. `active` resumes it, in `session` (default: its own), with `turns` more and `budget`
    US dollars in all; `dropped` ends it."""

    state: Literal["active", "paused", "done", "dropped"]
    session: str = ""
    turns: int | None = None
    budget: float | None = None


class GoalsQuery(msgspec.Struct, kw_only=True):
    """Query of the list of goals: ended ones too."""

    ended: bool = False


GoalList = list_of("GoalList", GoalFacts, "A list of goals.")


async def _found(state: AppState, call: Call[Any, Nothing]) -> GoalFacts:
    """The goal that the path names. Raises `Refused` with status 404 where this principal has none of that id."""
    try:
        return await operations.show_goal(state.access(call.who), call.path["id"])
    except HermesError as error:
        raise missing(str(error), "goal_not_found") from error


async def show(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Show a goal with its receipts."""
    return await _found(state, call)


async def add(state: AppState, call: Call[GoalRequest, Nothing]) -> Answer:
    """Set a goal."""
    body = call.body
    wish = Wish(
        text=body.text,
        criteria=tuple(criterion_of(each.kind, each.text) for each in body.criteria),
        constraints=tuple(body.constraints),
        turns=body.turns,
        money=body.money,
        tokens=body.tokens,
        anyway=body.anyway,
        later=not body.session,
    )
    return await operations.set_goal(state.access(call.who), wish, body.session)


async def change(state: AppState, call: Call[GoalChange, Nothing]) -> Answer:
    """Pause, resume or end a goal."""
    access, name, body = state.access(call.who), (await _found(state, call)).id, call.body
    if body.state == "active":
        return await operations.resume_goal(access, name, body.turns, body.budget, body.session)
    return await operations.stop_goal(access, name, State(body.state))


async def check(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Check the criteria now."""
    return await operations.check_goal(state.access(call.who), (await _found(state, call)).id)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/goals",
        act=asks(operations.list_goals, lambda found: GoalList(data=found)),
        summary="Your goals, open ones first; the owner's key shows everybody's.",
        query=GoalsQuery,
        answer=GoalList,
    ),
    Endpoint(
        method="POST",
        path="/v1/goals",
        act=add,
        summary="Set a goal, which a session pursues.",
        body=GoalRequest,
        answer=GoalFacts,
        status=201,
    ),
    Endpoint(method="GET", path="/v1/goals/{id}", act=show, summary="One goal with its receipts.", answer=GoalFacts),
    Endpoint(
        method="PATCH",
        path="/v1/goals/{id}",
        act=change,
        summary="Pause, resume or end a goal.",
        body=GoalChange,
        answer=GoalFacts,
    ),
    Endpoint(
        method="POST",
        path="/v1/goals/{id}/check",
        act=check,
        summary="Check the criteria of a goal now.",
        answer=GoalFacts,
    ),
)
