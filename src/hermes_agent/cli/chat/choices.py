"""What a person can choose after a slash command in the chat (sessions, models, checkpoints, lessons and the like), and
files behind an `@`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hermes_agent.app.operations.checkpoints import checkpoints_of
from hermes_agent.app.operations.sessions import summarize_sessions
from hermes_agent.cli.chat.attaching import FileIndex, file_choices
from hermes_agent.cli.chat.chat_session import ChatSession
from hermes_agent.cli.chat.picker import Wanted
from hermes_agent.cli.completing import list_rows
from hermes_agent.cli.offers import Offer, offers_of
from hermes_agent.cli.picker_choices import Choice
from hermes_agent.cli.surface import Surface
from hermes_agent.core.clock import ago
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.providers.local import served_models

MOST_SESSIONS = 200
MOST_CHECKPOINTS = 200
WALK = "hermes_agent.host.config_edit:keys"


async def sessions(chat: ChatSession) -> list[Choice]:
    """The sessions by their first words, with age, folder and cost."""
    now = chat.runtime.clock.now()
    return [
        Choice(
            line=each.record.id,
            name=each.name,
            about=" · ".join(
                filter(None, (ago(now - each.record.updated), Path(each.record.workspace).name, each.price))
            ),
        )
        for each in await summarize_sessions(chat.access, MOST_SESSIONS)
        if each.record.id != chat.session
    ]


async def models(chat: ChatSession) -> list[Choice]:
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
        Choice(
            line=name,
            name=name,
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


async def checkpoints(chat: ChatSession) -> list[Choice]:
    """The checkpoints of the working folder, newest first."""
    runtime, now = chat.runtime, chat.runtime.clock.now()
    kept = checkpoints_of(runtime.home, runtime.settings.checkpoints, runtime.clock)
    found = await kept.of(Path(chat.folder))
    return [
        Choice(
            line=str(each.number),
            name=f"{each.number}  before {each.told.why}",
            about=ago(now - each.at),
            sends=False,  # It changes files: a second Enter says that it is meant.
        )
        for each in found[:MOST_CHECKPOINTS]
    ]


async def skills(chat: ChatSession) -> list[Choice]:
    """The skills and bundles."""
    await chat.see_skills()
    return [Choice(name=f"/{name}", about=does, line=f"/{name} ", sends=False) for name, does in chat.skills]


async def settings(chat: ChatSession) -> list[Choice]:
    """The settings; choosing one shows it."""
    keys: Sequence[tuple[str, str]] = late(WALK)(type(chat.runtime.settings))
    return [Choice(name=key, about=doc, line=key) for key, doc in keys]


async def pins(chat: ChatSession) -> list[Choice]:
    """The pins of the session."""
    found = (await chat.runtime.hermes.view(chat.session)).pins.values() if chat.session else ()
    return [Choice(name=each.pin, about=each.text, line=each.pin) for each in found]


OWN = {
    "recent": sessions,
    "models": models,
    "checkpoints": checkpoints,
    "skills": skills,
    "settings": settings,
    "pins": pins,
}
"""Sources beside those that shell completion has too (`cli/completing.py`)."""
READS = ("show", "diff", "log", "runs", "check")
"""Verbs that change nothing: choosing what they act on sends the line."""


async def choices_of(chat: ChatSession, files: FileIndex, wanted: Wanted) -> list[Choice]:
    """The list that the input asks for; its lines use the name of the command that was typed. Raises `HermesError`."""
    if not wanted.source:
        return await asyncio.to_thread(file_choices, files, wanted.key[1:])
    if (own := OWN.get(wanted.source)) is not None:
        found = await own(chat)
    else:
        rows = await list_rows(wanted.source, replace(chat.access, session=chat.session, folder=chat.folder))
        found = [
            Choice(name=name, about=word.removeprefix(name).strip(), line=name, sends=False) for name, word in rows
        ]
    if wanted.source == "skills":
        return found
    sends = wanted.key.partition(" ")[2] in READS
    return [replace(each, line=f"/{wanted.key} {each.line}", sends=each.sends or sends) for each in found]
