"""Slash commands about a chat: /topic (several conversations in one chat) and /sethome (the channel's home chat)."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from hermes_agent.app.chats.settings import home_of
from hermes_agent.app.commands.command import Desk, Done, command
from hermes_agent.app.settings import Settings
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.host.locks import change_under

CURRENT = "topic"
"""The fact of a chat that names its topic."""
KNOWN = "topic:"
"""What the facts of a chat begin with that name the topics there are."""
MOST = 50
WORD = re.compile(r"[\w-]{1,40}")
USAGE = (
    "Say `/topic create NAME`, `/topic switch NAME`, `/topic list` or `/topic off`; names are of letters, digits, - _."
)


@command(
    "topic",
    "Have several conversations in one chat.",
    arguments="[list|create|switch|off] [NAME]",
    while_running=True,
    at_once=True,
)
async def topic(desk: Desk, rest: str) -> Done:
    """Create, switch to or list topics, or return to the chat without a topic."""
    facts = desk.hermes.store.facts
    place = replace(desk.inbound.conversation, topic="").key
    known = await facts.of(place)
    names = [fact.removeprefix(KNOWN) for fact in known if fact.startswith(KNOWN)]
    word, _, name = rest.partition(" ")
    name = name.strip().lower()
    match word:
        case "" | "list":
            return Done(text=_listed(names, known.get(CURRENT, "")))
        case "off":
            await facts.set(place, CURRENT, "")
            return Done(text="No topic: what you say belongs to this chat itself.")
        case "create" | "switch" if WORD.fullmatch(name):
            _check(word, name, names)
        case _:
            raise HermesError(USAGE)
    if word == "create":
        await facts.set(place, f"{KNOWN}{name}", "yes")
    await facts.set(place, CURRENT, name)
    return Done(text=f"Topic {name}: it has a session of its own. `/topic off` goes back.")


def _check(word: str, name: str, names: list[str]) -> None:
    if word == "create" and name in names:
        raise HermesError(f"There is a topic {name} already: `/topic switch {name}`.")
    if word == "create" and len(names) >= MOST:
        raise HermesError(f"There are {MOST} topics here, which is the most.")
    if word == "switch" and name not in names:
        raise HermesError(f"There is no topic {name}. {_listed(names, '')}")


def _listed(names: list[str], current: str) -> str:
    if not names:
        return "There are no topics here: `/topic create NAME` starts one."
    return "Topics: " + ", ".join(f"{name} (this one)" if name == current else name for name in names)


SET = "hermes_agent.host.config_edit:set_value"
UNSET = "hermes_agent.host.config_edit:unset"
HOME_USAGE = "Send `/sethome` in the chat that shall be the home, or `/sethome off`."


@command(
    "sethome",
    "Make this chat the home of its channel, for messages that belong to no chat.",
    arguments="[off]",
    while_running=True,
)
async def sethome(desk: Desk, rest: str) -> Done:
    """Set this chat as its channel's home in config.yaml; `off` removes it."""
    place, home = desk.inbound.conversation.place, desk.runtime.home
    if place.platform not in desk.runtime.settings.gateway.channels:
        raise HermesError("Only a chat of the gateway can be a home.")
    key = f"gateway.channels.{place.platform}.home"
    match rest:
        case "off":
            change = partial(late(UNSET), home, Settings, key)
            await change_under(home.locks / "config.lock", partial(change, locks=False))
            return Done(text=f"{place.platform} has no home chat any more.")
        case "":
            change = partial(late(SET), home, Settings, key, home_of(place))
            await change_under(home.locks / "config.lock", partial(change, locks=False))
            return Done(text=f"This is the home of {place.platform}: `hermes send -t {place.platform}` leads here.")
        case _:
            raise HermesError(HOME_USAGE)
