"""Endpoints `/v1/runs`: start, show, watch, answer and stop runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import msgspec

from hermes_agent.api.completion import run_headers, wish_of
from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing
from hermes_agent.api.problems import FINAL, bad, in_json
from hermes_agent.api.requests import Said, Spoken, Words, described, origin_of, parts_of, says
from hermes_agent.api.response_schemas import ChildFacts, ChildList, Done, Run
from hermes_agent.api.run_view import Ref, RunView
from hermes_agent.api.service import SELF
from hermes_agent.app.operations.questions import answer_open
from hermes_agent.app.operations.sessions import run_log
from hermes_agent.core.chat import Busy, Principal, Standing
from hermes_agent.core.errors import NothingMore, UnknownSession
from hermes_agent.core.events import RunStarted, Seen
from hermes_agent.host.inbound.message import Refused, event, streamed
from hermes_agent.host.late import late

LAST = "last-event-id"
AGENTS_OF = "hermes_agent.app.operations.agents:agents_of"
Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class RunRequest(msgspec.Struct, kw_only=True):
    """Body of `POST /v1/runs`: a message for a new run. `session` continues that session, `key` the conversation that
    the client gave this name; `busy` says what to do while a run of the session is active."""

    input: Spoken
    session: str = ""
    key: Annotated[str, msgspec.Meta(max_length=200)] = ""
    instructions: str = ""
    model: str = SELF
    workspace: Annotated[str, described(pattern=r"^(/[^\x00]*)?$")] = ""
    busy: Busy = Busy.STEER


class EventsQuery(msgspec.Struct, kw_only=True):
    """Query of a run's event stream: the log number of the last event that the client has seen."""

    after: Number = 0


class AnswerRequest(msgspec.Struct, kw_only=True):
    """Body of an answer to a run's question: one of its choices, or free text; `question` is the question's id."""

    answer: Words
    question: str = ""


async def start(state: AppState, call: Call[RunRequest, Nothing]) -> Answer:
    """Start a run and return at once."""
    request = call.body
    said = Said(role="user", content=request.input)
    if not says(parts_of(said.content, call.who)):
        raise bad("`input` says nothing.", "input")
    if request.workspace:
        check_folder(request.workspace, call.who)
    names = {name: value for name, value in (("session", request.session), ("name", request.key)) if value}
    more = {"instructions": request.instructions, "model": request.model, "workspace": request.workspace}
    wish = wish_of(call, [said], "input", busy=request.busy, **more, **names)
    begun = await state.service.say(wish)
    return in_json(RunView(ref=begun.ref).facts(), 202, run_headers(begun))


def check_folder(folder: str, who: Principal) -> None:
    """Raise `Refused` if this principal may not choose the folder, or the path is invalid."""
    if who.standing is not Standing.OWNER:
        raise Refused(403, "Only the owner may choose the folder.", code="workspace_not_allowed")
    if not folder.startswith("/") or "\0" in folder:
        raise bad("`workspace` is the whole path of a folder, from `/`.", "workspace")


async def show(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Show a run's state."""
    return (await state.service.run_view(call.who, call.path["id"])).facts()


async def watch(state: AppState, call: Call[Nothing, EventsQuery]) -> Answer:
    """Stream a run's events after a number, until it ends."""
    story = await state.service.run_view(call.who, call.path["id"])
    last = call.headers.get(LAST, "")
    after = max(call.query.after, int(last) if last.isascii() and last.isdigit() and len(last) < 16 else 0)
    return streamed(_events(state, story.ref, story, after), ended=state.ending)


async def _events(state: AppState, ref: Ref, known: RunView, after: int) -> AsyncGenerator[bytes, None]:
    """Events after the number `after`, with the live ones between them; waits for a run that has not begun. Ends if
    the session is deleted or the run will never start."""
    if known.is_over:
        async for entry in run_log(state.runtime, ref.session, known.run, after):
            yield _line(Seen(session=ref.session, number=entry.number, run=entry.run, at=entry.at, event=entry.event))
        return
    story, started = RunView(ref=ref, run=known.run, status="running" if known.run else "queued"), list[Seen]()
    events = state.runtime.hermes.watch(ref.session, after, ref.row)
    async with aclosing(events):
        while not story.is_over:
            try:
                seen = await anext(events)
            except (NothingMore, UnknownSession):
                return
            if not story.run and isinstance(seen.event, RunStarted):
                started = [seen]  # Whether it is this run shows with the message that it takes.
            if story.take(seen):
                yield b"".join(_line(each) for each in (*started, seen) if each.run == seen.run)
                started = []


def _line(seen: Seen) -> bytes:
    return event(seen, name=seen.event.kind, number=seen.number)


async def answer(state: AppState, call: Call[AnswerRequest, Nothing]) -> Answer:
    """Answer the question that a run waits with."""
    story = await state.service.run_view(call.who, call.path["id"])
    ref = story.ref
    if story.question is None or call.body.question not in ("", story.question.id):
        raise Refused(409, "The run does not ask that (any more).", code="nothing_asked", headers=FINAL)
    access, question = state.access(call.who), story.question.id
    await answer_open(access, ref.session, question, call.body.answer, origin_of(call.who))
    story.question, story.status = None, "running"
    return story.facts()


async def children(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """List the agents that a run gave goals."""
    story = await state.service.run_view(call.who, call.path["id"])
    found = await late(AGENTS_OF)(state.access(call.who), story.ref.session, story.run)
    return ChildList(
        data=[
            ChildFacts(
                session=each.agent.session,
                goal=each.agent.goal,
                role=each.agent.role,
                isolation=each.agent.isolation,
                status=each.agent.outcome or each.agent.state,
                folder=each.agent.folder,
                branch=each.agent.branch,
                created=each.agent.created,
                ended=each.agent.ended,
                report=each.text if each.agent.outcome else "",
            )
            for each in found
        ]
    )


async def stop(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Stop the run."""
    return Done(done=await state.service.stop(await state.service.run_view(call.who, call.path["id"])))


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/runs",
        act=start,
        summary="Say something, and do not wait for the reply.",
        body=RunRequest,
        answer=Run,
        status=202,
    ),
    Endpoint(method="GET", path="/v1/runs/{id}", act=show, summary="Where a run stands.", answer=Run),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/events",
        act=watch,
        summary="The run's events from a number on (`after`, or the header Last-Event-ID), up to its end.",
        query=EventsQuery,
        answer=None,
        media_type="text/event-stream",
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/answer",
        act=answer,
        summary="Answer what the run asks: an approval, or a question.",
        body=AnswerRequest,
        answer=Run,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/approval",
        act=answer,
        summary="The same, under the name that programs for approvals know.",
        body=AnswerRequest,
        answer=Run,
    ),
    Endpoint(method="GET", path="/v1/runs/{id}/children", act=children, summary="Its agents.", answer=ChildList),
    Endpoint(method="POST", path="/v1/runs/{id}/stop", act=stop, summary="End the run at once.", answer=Done),
)
