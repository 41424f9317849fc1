"""`/sethome`: the chat where what belongs to no other is sent."""

from __future__ import annotations

from functools import partial

from hermes_agent.app.chats.home_chats import home_of
from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.host.locks import change_under

SET = "hermes_agent.host.config_edit:set_value"
UNSET = "hermes_agent.host.config_edit:unset"
SETTINGS = "hermes_agent.app.settings:Settings"
USAGE = "Say `/sethome` in the chat that is to be it, or `/sethome off`."


async def sethome(desk: Desk, rest: str) -> Done:
    """Have this chat be the home of its channel, in config.yaml; `off` takes it away."""
    place, home = desk.inbound.conversation.place, desk.runtime.home
    if place.platform not in desk.runtime.settings.gateway.channels:
        raise HermesError("Only a chat of the gateway can be a home.")
    key = f"gateway.channels.{place.platform}.home"
    match rest:
        case "off":
            change = partial(late(UNSET), home, late(SETTINGS), key)
            await change_under(home.locks / "config.lock", partial(change, locks=False))
            return Done(text=f"{place.platform} has no home chat any more.")
        case "":
            change = partial(late(SET), home, late(SETTINGS), key, home_of(place))
            await change_under(home.locks / "config.lock", partial(change, locks=False))
            return Done(text=f"This is the home of {place.platform}: `hermes send -t {place.platform}` leads here.")
        case _:
            raise HermesError(USAGE)


SETHOME = Command(
    name="sethome",
    summary="Have this chat be where what belongs to no other is sent.",
    arguments="[off]",
    act=sethome,
    while_running=True,
)
