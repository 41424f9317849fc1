"""First contact of a channel during its setup: checks what was entered, and waits for the first private message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from hermes_agent.app.operations.access import Access, OfflineSystem
from hermes_agent.app.operations.serving import facts_of
from hermes_agent.core.errors import HermesError
from hermes_agent.gateway.channel import STRANGER, Channel, Heard, Invited, Kind, Needs, NotNow, Said
from hermes_agent.host.http import Http

PAUSE = 2.0
"""Seconds before it listens again after the connection broke."""


class FirstMessage(HermesError):
    """Ends the listening at the first private message. The platform keeps the message, because it was not taken in:
    the gateway gets it again and answers it."""

    def __init__(self, said: Said) -> None:
        super().__init__("Somebody wrote.")
        self.said = said


@asynccontextmanager
async def trial(
    access: Access[OfflineSystem], kind: Kind, options: Mapping[str, str], secret: Callable[[str], str]
) -> AsyncIterator[Channel]:
    """Context manager: the channel with these options and secrets, outside of any gateway. Raises `ConfigError` if
    something is missing."""
    http, system = Http(), access.system
    try:
        channel = kind.make(
            Needs(
                options=kind.with_defaults(options),
                secret=secret,
                http=http,
                clock=system.clock,
                folder=system.home.root / "channels" / kind.name,
                kept=facts_of(system),
            )
        )
        try:
            yield channel
        finally:
            await channel.close()
    finally:
        await http.close()


async def first_message(access: Access[OfflineSystem], channel: Channel, passed: frozenset[str]) -> Said:
    """Wait for a private message of a person who is not among the `passed`. Raises `ChannelError`."""

    async def hear(heard: Heard) -> str:
        if isinstance(heard, Invited):
            return STRANGER if heard.where.chat_kind == "dm" else ""
        is_private = isinstance(heard, Said) and heard.where.chat_kind == "dm"
        if isinstance(heard, Said) and is_private and not heard.sender.bot and heard.sender.user not in passed:
            raise FirstMessage(heard)
        return ""

    while True:
        try:
            await channel.listen(hear)
        except FirstMessage as first:
            return first.said
        except NotNow:
            await access.system.clock.sleep(PAUSE)
