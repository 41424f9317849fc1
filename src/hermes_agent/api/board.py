"""Endpoints `/v1/board`: list, create, read, change and steer cards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing, asks, body_of
from hermes_agent.api.problems import missing
from hermes_agent.app.operations import board as operations
from hermes_agent.app.operations.kanban import CHANGES, CREATES


class CardQuery(msgspec.Struct, kw_only=True):
    """Query of the list of cards."""

    status: str = ""
    board: str = ""
    assignee: str = ""
    tenant: str = ""


class VerbRequest(msgspec.Struct, kw_only=True):
    """Body of a verb: `text` is the summary, reason, answer or comment, `to` the profile, status or child card."""

    text: str = ""
    to: str = ""


class CardList(msgspec.Struct, kw_only=True):
    """Cards, the most urgent first; `notice` says where nobody works on them."""

    data: Sequence[operations.CardRow]
    notice: str = ""


class Said(msgspec.Struct, kw_only=True):
    """What became of it, in a sentence."""

    text: str


async def act(state: AppState, call: Call[VerbRequest, Nothing]) -> Answer:
    """Do a verb to a card."""
    access, card, said = state.access(call.who), call.path["id"], call.body
    verb = call.path["verb"]
    if verb not in VERBS:
        raise missing(f"There is no verb `{verb}`. There are: {', '.join(VERBS)}.")
    operation, argument = VERBS[verb]
    await operation(access, card, *((getattr(said, argument),) if argument else ()))
    return (await operations.show_card(access, card)).card


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
CardRequest = body_of("CardRequest", CREATES, "Body of a new card; lists are texts with commas.")
CardChange = body_of("CardChange", CHANGES[1:], "Body of a change to a card; what is not sent stays.")
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/board/cards",
        act=asks(operations.list_cards, lambda found: CardList(data=found.cards, notice=found.notice)),
        summary="Cards, the most urgent first; archived ones with `status=archived`.",
        query=CardQuery,
        answer=CardList,
    ),
    Endpoint(
        method="POST",
        path="/v1/board/cards",
        act=asks(operations.create_card),
        summary="Create a card.",
        body=CardRequest,
        answer=operations.Made,
        status=201,
    ),
    Endpoint(
        method="GET",
        path=CARD,
        act=asks(operations.show_card),
        summary="A card with everything around it.",
        answer=operations.CardView,
    ),
    Endpoint(
        method="PATCH",
        path=CARD,
        act=asks(operations.update_card),
        summary="Change what a card says.",
        body=CardChange,
        answer=operations.Card,
    ),
    Endpoint(
        method="DELETE",
        path=CARD,
        act=asks(operations.delete_card, lambda text: Said(text=text)),
        summary="Remove a card that never ran; any other is archived.",
        answer=Said,
    ),
    Endpoint(
        method="POST",
        path=f"{CARD}/{{verb}}",
        act=act,
        summary="Steer a card: assign, move, start, block, unblock, complete, cancel, archive, link, comment.",
        body=VerbRequest,
        answer=operations.Card,
    ),
    Endpoint(
        method="GET",
        path="/v1/board/stats",
        act=asks(operations.count_cards),
        summary="How many cards each board has, by status.",
        answer=operations.Counts,
    ),
)
