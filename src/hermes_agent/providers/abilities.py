"""Warnings about a model's limits before it is used: missing abilities, small window."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_agent.core.messages import Image, ModelRequest, Part, ToolResult
from hermes_agent.providers.catalog import ModelFacts, catalogue_date
from hermes_agent.providers.route import Route
from hermes_agent.providers.routing.endpoint import REPLY_SHARE, SMALL_WINDOW

# Below this even the prompt and the tools take a noticeable part.
TIGHT_WINDOW = 16_384


def limits_of(route: Route) -> tuple[str, ...]:
    """What the model cannot do, a sentence each."""
    return tuple(said for said in (unlisted(route), wordy(route), narrow(route)) if said)


def limits_for(route: Route, request: ModelRequest) -> list[str]:
    """What the model cannot accept of a request, and a small window, a sentence each."""
    found = [unlisted(route), narrow(route)]
    if request.prefix.tools:
        found.append(wordy(route))
    if any(isinstance(part, Image) for part in _all_parts(request)):
        found.append(blind(route))
    return [said for said in found if said]


def unlisted(route: Route) -> str:
    """Warning for a model that is not in the catalogue and gets the facts of an earlier one of its family."""
    facts = route.facts
    if not facts.like:
        return ""
    unpriced = "; its price is unknown" if facts.price is None else ""
    return f"{route.name} is not in the catalogue of {catalogue_date()}: it is treated like {facts.like}{unpriced}."


def wordy(route: Route) -> str:
    """Warning for a model that cannot call tools; empty for others."""
    if route.facts.tools:
        return ""
    return f"{route.name} calls no tools: they are left out, and it answers with words alone."


def narrow(route: Route) -> str:
    """Warning for a small window; empty for others."""
    facts = route.facts
    if facts.window >= SMALL_WINDOW:
        return ""
    is_tight = facts.window <= TIGHT_WINDOW  # The prompt takes much of it.
    tight = " Give it more where you can: long conversations are shortened early." if is_tight else ""
    most = f"{facts.window // REPLY_SHARE:,}"
    return f"{route.name} has a window of {facts.window:,} tokens, of which a reply may take {most}.{tight}"


def blind(route: Route) -> str:
    """Warning for a picture sent to a model without vision; empty for others."""
    if route.facts.images:
        return ""
    return f"{route.name} sees no pictures. Hermes tells it in words that there is one."


def _all_parts(request: ModelRequest) -> Iterator[Part]:
    for message in request.messages:
        for part in message.parts:
            yield part
            if isinstance(part, ToolResult):
                yield from part.parts


def abilities(facts: ModelFacts) -> dict[str, str]:
    """What a model can do, in words, by the catalogue's name for it."""
    levels = ", ".join(facts.efforts)
    beside = "" if facts.tool_efforts is None else f"; beside tools: {', '.join(facts.tool_efforts)}"
    return {
        "tools": ("yes" if facts.parallel else "one at a time") if facts.tools else "no",
        "images": "yes" if facts.images else "no",
        "files": "yes" if facts.files else "no",
        "thinking": f"{levels}{beside}" if facts.thinking else "as the model likes",
    }
