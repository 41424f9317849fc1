"""Endpoints `/v1/board`: list, create, read, change and steer cards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

import msgspec

from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing
from hermes_agent.api.problems import missing
from hermes_agent.app.operations import board as operations

Title = Annotated[str, msgspec.Meta(max_length=200)]


class CardQuery(msgspec.Struct, kw_only=True):
    """Query of the list of cards."""

    status: str = ""
    board: str = ""
    assignee: str = ""
    tenant: str = ""


class CardRequest(msgspec.Struct, kw_only=True):
    """Body of a new card; lists are texts with commas, as on the command line."""

    title: Title
    body: str = ""
    assignee: str = ""
    parents: str = ""
    workspace: str = "scratch"
    branch: str = ""
    board: str = "main"
    tenant: str = ""
    priority: int = 2
    check: str = ""
    skills: str = ""
    toolsets: str = ""
    model: str = ""
    max_minutes: float = 0.0
    max_attempts: int = 0
    goal_turns: int = 0
    key: str = ""
    triage: bool = False
    hold: bool = False


class CardChange(msgspec.Struct, kw_only=True):
    """Body of a change to a card; what is not sent stays."""

    title: Title = ""
    body: str = ""
    priority: int = -1
    tenant: str = ""
    model: str = ""
    check: str = ""
    max_minutes: float = -1
    max_attempts: int = -1
    goal_turns: int = -1


class VerbRequest(msgspec.Struct, kw_only=True):
    """Body of a verb: `text` is the summary, reason, answer or comment, `to` the profile, status or child card."""

    text: str = ""
    to: str = ""


class CardFacts(msgspec.Struct, kw_only=True):
    """A card."""

    id: str
    board: str
    title: str
    status: str
    assignee: str
    priority: int
    tenant: str
    parents_left: int
    created: float
    body: str = ""
    summary: str = ""
    blocked: str = ""
    workspace: str = ""
    branch: str = ""
    attempts: int = 0
    crashes: int = 0


class CardList(msgspec.Struct, kw_only=True):
    """Cards, the most urgent first; `notice` says where nobody works on them."""

    data: list[CardFacts]
    notice: str = ""


class CardEventFacts(msgspec.Struct, kw_only=True):
    """Something that happened to a card; `origin` labels the text."""

    number: int
    kind: str
    at: float
    by: str
    text: str
    origin: str


class CardRunFacts(msgspec.Struct, kw_only=True):
    """A process of a card."""

    epoch: int
    kind: str
    profile: str
    session: str
    started: float
    ended: float | None
    outcome: str
    exit_code: int | None
    note: str


class CardDetails(msgspec.Struct, kw_only=True):
    """A card with everything around it."""

    card: CardFacts
    parents: list[str]
    children: list[str]
    files: list[str]
    events: list[CardEventFacts]
    runs: list[CardRunFacts]


class BoardCounts(msgspec.Struct, kw_only=True):
    """How many cards each board has, by status."""

    boards: dict[str, dict[str, int]]
    notice: str = ""


class Said(msgspec.Struct, kw_only=True):
    """What became of it, in a sentence."""

    text: str


async def list_cards(state: AppState, call: Call[Nothing, CardQuery]) -> Answer:
    """List the cards that this principal may see."""
    query = call.query
    found = await operations.list_cards(state.access(call.who), query.status, query.board, query.assignee, query.tenant)
    data = [CardFacts(**{name: getattr(row, name) for name in ROW}) for row in found.cards]
    return CardList(data=data, notice=found.notice)


async def create(state: AppState, call: Call[CardRequest, Nothing]) -> Answer:
    """Create a card."""
    return facts_of(await operations.create_card(state.access(call.who), **msgspec.structs.asdict(call.body)))


async def show(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Show a card."""
    view = await operations.show_card(state.access(call.who), call.path["id"])
    return CardDetails(
        card=facts_of(view.card),
        parents=[row.id for row in view.parents],
        children=[row.id for row in view.children],
        files=[file.name for file in view.files],
        events=[
            CardEventFacts(
                number=each.number, kind=each.kind, at=each.at, by=each.by, text=each.text, origin=each.origin.value
            )
            for each in view.events
        ],
        runs=[CardRunFacts(**{name: getattr(run, name) for name in RUN}, kind=run.kind.value) for run in view.runs],
    )


async def update(state: AppState, call: Call[CardChange, Nothing]) -> Answer:
    """Change what a card says."""
    said = msgspec.structs.asdict(call.body)
    return facts_of(await operations.update_card(state.access(call.who), call.path["id"], **said))


async def delete(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Remove a card that never ran; any other is archived."""
    return Said(text=await operations.delete_card(state.access(call.who), call.path["id"]))


async def act(state: AppState, call: Call[VerbRequest, Nothing]) -> Answer:
    """Do a verb to a card."""
    access, card, said = state.access(call.who), call.path["id"], call.body
    verb = call.path["verb"]
    if verb not in VERBS:
        raise missing(f"There is no verb `{verb}`. There are: {', '.join(VERBS)}.")
    operation, argument = VERBS[verb]
    await operation(access, card, *((getattr(said, argument),) if argument else ()))
    return facts_of((await operations.show_card(access, card)).card)


async def stats(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Count the cards."""
    found = await operations.count_cards(state.access(call.who))
    return BoardCounts(boards=found.boards, notice=found.notice)


def facts_of(card: operations.Card) -> CardFacts:
    """A card as an API object."""
    same = {name: getattr(card, name) for name in (*ROW, "body", "summary", "branch", "attempts", "crashes")}
    return CardFacts(**{**same, "status": card.status.value}, blocked=card.blocked or "", workspace=card.folder)


ROW = ("id", "board", "title", "status", "assignee", "priority", "tenant", "parents_left", "created")
RUN = ("epoch", "profile", "session", "started", "ended", "outcome", "exit_code", "note")
VERBS: Mapping[str, tuple[Callable[..., Awaitable[object]], str]] = {
    "assign": (operations.assign_card, "to"),
    "move": (operations.move_card, "to"),
    "start": (operations.start_card, ""),
    "block": (operations.block_card, "text"),
    "unblock": (operations.unblock_card, "text"),
    "complete": (operations.complete_card, "text"),
    "cancel": (operations.cancel_card, ""),
    "archive": (operations.archive_card, ""),
    "link": (operations.link_cards, "to"),
    "comment": (operations.comment_card, "text"),
}
"""What a verb calls, and what of its body it takes."""
CARD = "/v1/board/cards/{id}"
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/board/cards",
        act=list_cards,
        summary="Cards, the most urgent first; archived ones with `status=archived`.",
        query=CardQuery,
        answer=CardList,
    ),
    Endpoint(
        method="POST",
        path="/v1/board/cards",
        act=create,
        summary="Create a card.",
        body=CardRequest,
        answer=CardFacts,
        status=201,
    ),
    Endpoint(method="GET", path=CARD, act=show, summary="A card with everything around it.", answer=CardDetails),
    Endpoint(
        method="PATCH", path=CARD, act=update, summary="Change what a card says.", body=CardChange, answer=CardFacts
    ),
    Endpoint(
        method="DELETE",
        path=CARD,
        act=delete,
        summary="Remove a card that never ran; any other is archived.",
        answer=Said,
    ),
    Endpoint(
        method="POST",
        path=f"{CARD}/{{verb}}",
        act=act,
        summary="Steer a card: assign, move, start, block, unblock, complete, cancel, archive, link, comment.",
        body=VerbRequest,
        answer=CardFacts,
    ),
    Endpoint(
        method="GET",
        path="/v1/board/stats",
        act=stats,
        summary="How many cards each board has, by status.",
        answer=BoardCounts,
    ),
)
