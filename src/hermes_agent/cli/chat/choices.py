"""What a person can choose after a slash command in the chat: sessions, models, checkpoints, skills and the like."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from hermes_agent.app.operations.checkpoints import checkpoints_of
from hermes_agent.app.operations.sessions import summarize_sessions
from hermes_agent.cli.chat.chat_session import ChatSession, names
from hermes_agent.cli.chat.picker import Pick
from hermes_agent.cli.offers import Offer, offers_of
from hermes_agent.cli.surface import Surface
from hermes_agent.core.clock import ago
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.providers.local import served_models
from hermes_agent.providers.vendor import LEVELS

MOST_SESSIONS = 200
MOST_CHECKPOINTS = 200
WALK = "hermes_agent.host.config_edit:keys"


async def sessions(chat: ChatSession) -> list[Pick]:
    """The sessions by their first words, with age, folder and cost."""
    now = chat.runtime.clock.now()
    return [
        Pick(
            line=f"/resume {each.record.id}",
            label=each.name,
            about=" · ".join(
                filter(None, (ago(now - each.record.updated), Path(each.record.workspace).name, each.price))
            ),
        )
        for each in await summarize_sessions(chat.access, MOST_SESSIONS)
        if each.record.id != chat.session
    ]


async def models(chat: ChatSession) -> list[Pick]:
    """The models of the configured server, then those that could be asked now, then the rest of the catalogue."""
    served, current = list[str](), ""
    try:
        route = chat.runtime.route(chat.record.model if chat.record is not None else "")
    except HermesError:
        pass
    else:
        current = route.name
        served = [f"{route.vendor.name}/{name}" for name in await served_models(chat.runtime.http, route)]
    offers = {each.model: each for each in await asyncio.to_thread(offers_of, Surface(invocation=chat.invocation))}
    ready = [name for name, each in offers.items() if each.ready and name not in served]
    rest = [name for name, each in offers.items() if not each.ready and name not in served]
    return [
        Pick(
            line=f"/model {name}",
            label=name,
            about=_about(offers.get(name), "current" * (name == current) or "on your server" * (name in served)),
        )
        for name in dict.fromkeys(filter(None, (current, *served, *ready, *rest)))
    ]


def _about(offer: Offer | None, here: str) -> str:
    facts = [here] if here else []
    if offer is not None:
        facts += [] if offer.ready or here else ["no key"]
        facts += [f"{offer.window // 1000:,}k"] if offer.window else []
        facts += [f"${offer.price.input:g}/${offer.price.output:g}"] if offer.price else []
    return " · ".join(facts)


async def checkpoints(chat: ChatSession) -> list[Pick]:
    """The checkpoints of the working folder, newest first."""
    runtime, now = chat.runtime, chat.runtime.clock.now()
    kept = checkpoints_of(runtime.home, runtime.settings.checkpoints, runtime.clock)
    found = await kept.of(Path(chat.folder))
    return [
        Pick(
            line=f"/rollback {each.number}",
            label=f"{each.number}  before {each.told.why}",
            about=ago(now - each.at),
            sends=False,  # It changes files: a second Enter says that it is meant.
        )
        for each in found[:MOST_CHECKPOINTS]
    ]


async def skills(chat: ChatSession) -> list[Pick]:
    """The skills and bundles; choosing one writes its command, for the words that follow."""
    await chat.see_skills()
    return [
        Pick(line=f"/{name} ", label=f"/{name}", about=" ".join(does.split()), sends=False)
        for name, does in chat.skills
    ]


async def levels(_: ChatSession) -> list[Pick]:
    """The levels of reasoning."""
    return [Pick(line=f"/reasoning {level}", label=level) for level in (*LEVELS, "off")]


async def commands(_: ChatSession) -> list[Pick]:
    """The commands."""
    return [Pick(line=f"/help {each.name}", label=f"/{each.name}", about=each.summary) for each in names()]


async def settings(chat: ChatSession) -> list[Pick]:
    """The settings; choosing one shows it."""
    keys: Sequence[tuple[str, str]] = late(WALK)(type(chat.runtime.settings))
    return [Pick(line=f"/config {key}", label=key, about=doc) for key, doc in keys]
