"""Endpoints `/v1/sessions` and `/v1/search`: list, show, rename, branch, delete and search sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing, asks, removes, shows
from hermes_agent.api.problems import bad
from hermes_agent.api.response_schemas import (
    EventList,
    HitList,
    MessageFacts,
    MessageList,
    Removed,
    SessionFacts,
    SessionList,
)
from hermes_agent.api.runs import Number
from hermes_agent.app.operations import sessions as operations
from hermes_agent.core.events import Entry

Title = Annotated[str, msgspec.Meta(max_length=200)]


class PageQuery(msgspec.Struct, kw_only=True):
    """Query of the session list: page size, and the end of the previous page."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 20
    before: str = ""


class LogQuery(msgspec.Struct, kw_only=True):
    """Query for a part of a session's log: events after this number, at most `limit`."""

    after: Number = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200


class TitleRequest(msgspec.Struct, kw_only=True):
    """Body of a rename request: the new title of a session."""

    title: Title


class BranchRequest(msgspec.Struct, kw_only=True):
    """Body of a branch request: copy a session up to the event `upto` (default: all of it)."""

    title: Title = ""
    upto: Number | None = None


class SearchQuery(msgspec.Struct, kw_only=True):
    """Query of the search in session messages: words, "quoted phrases", and -words to exclude."""

    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20


async def list_sessions(state: AppState, call: Call[Nothing, PageQuery]) -> Answer:
    """List the sessions this principal may see, most recently used first."""
    page = call.query
    records = await operations.list_sessions(state.access(call.who), page.limit, page.before)
    more = records[-1].id if len(records) == page.limit else None
    return shows(SessionList)({"data": records, "next": more})


async def messages(state: AppState, call: Call[Nothing, LogQuery]) -> Answer:
    """List a session's messages and replies."""
    entries = await operations.read_log(state.access(call.who), call.path["id"], call.query.after, call.query.limit)
    said = operations.messages_in(entries)
    return MessageList(
        data=[
            MessageFacts(number=each.number, at=each.at, role=each.role, text=each.message.text, run=each.run)
            for each in said
        ],
        last=_last(entries, call),
    )


async def events(state: AppState, call: Call[Nothing, LogQuery]) -> Answer:
    """List a part of a session's log."""
    entries = await operations.read_log(state.access(call.who), call.path["id"], call.query.after, call.query.limit)
    return EventList(data=entries, last=_last(entries, call))


def _last(entries: Sequence[Entry], call: Call[Nothing, LogQuery]) -> int:
    return entries[-1].number if entries else call.query.after


async def search(state: AppState, call: Call[Nothing, SearchQuery]) -> Answer:
    """Search messages."""
    if not call.query.q.strip():
        raise bad("Say what to look for.", "q")
    hits = await operations.search_messages(state.access(call.who), call.query.q, call.query.limit)
    return shows(HitList)({"data": hits})


facts_of = shows(SessionFacts)
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/sessions",
        act=list_sessions,
        summary="Your sessions, the one used last first; the owner's key shows everybody's.",
        query=PageQuery,
        answer=SessionList,
    ),
    Endpoint(
        method="GET",
        path="/v1/sessions/{id}",
        act=asks(operations.get_session, facts_of),
        summary="One session.",
        answer=SessionFacts,
    ),
    Endpoint(
        method="PATCH",
        path="/v1/sessions/{id}",
        act=asks(operations.rename_session, facts_of),
        summary="Change the title of a session.",
        body=TitleRequest,
        answer=SessionFacts,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/sessions/{id}",
        act=removes(operations.delete_session),
        summary="Remove a session with its log.",
        answer=Removed,
    ),
    Endpoint(
        method="POST",
        path="/v1/sessions/{id}/branch",
        act=asks(operations.branch_session, facts_of),
        summary="Copy a session up to one of its events.",
        body=BranchRequest,
        answer=SessionFacts,
        status=201,
    ),
    Endpoint(
        method="GET",
        path="/v1/sessions/{id}/messages",
        act=messages,
        summary="What was said in a session.",
        query=LogQuery,
        answer=MessageList,
    ),
    Endpoint(
        method="GET",
        path="/v1/sessions/{id}/events",
        act=events,
        summary="A part of a session's log.",
        query=LogQuery,
        answer=EventList,
    ),
    Endpoint(
        method="GET",
        path="/v1/search",
        act=search,
        summary="Messages by their words, the best first.",
        query=SearchQuery,
        answer=HitList,
    ),
)
