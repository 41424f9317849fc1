"""A stage for each channel: the channel itself, and the double of its platform that it talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes_agent.core.clock import SystemClock
from hermes_agent.gateway.channel import Abilities, Channel, Kind, Needs
from hermes_agent.gateway.channels.telegram import CHANNEL as TELEGRAM
from hermes_agent.host.http import Http
from hermes_agent.testing.channel import ABILITIES, FakePlatform
from hermes_agent.testing.doubles.platform import Double
from hermes_agent.testing.doubles.telegram import TOKEN, telegram


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one test of the contract works with."""

    kind: Kind
    channel: Channel
    double: Double


def needs(folder: Path, options: Mapping[str, str] | None = None, secret: str = "secret") -> Needs:
    """What a channel of a test is made of."""
    return Needs(options=options or {}, secret=lambda _: secret, http=Http(), clock=SystemClock(), folder=folder)


Maker = Callable[[Path], AbstractAsyncContextManager[Stage]]


def fake(abilities: Abilities) -> Maker:
    @asynccontextmanager
    async def make(folder: Path) -> AsyncIterator[Stage]:
        platform = FakePlatform(abilities)
        kind = platform.kind()
        yield Stage(kind=kind, channel=kind.make(needs(folder)), double=platform)

    return make


@asynccontextmanager
async def on_telegram(folder: Path) -> AsyncIterator[Stage]:
    async with telegram() as double:
        made = needs(folder, {"api_url": double.url}, TOKEN)
        yield Stage(kind=TELEGRAM, channel=TELEGRAM.make(made), double=double)
        await made.http.close()


MAKERS: dict[str, Maker] = {
    "telegram": on_telegram,
    "fake": fake(ABILITIES),
    "fake that is keyed": fake(Abilities(longest_message=100, keyed=True, edit=True)),
    "fake that is read back": fake(Abilities(longest_message=100, read_back=True)),
}
"""Name of a channel (each of the table, and the fakes) -> what makes its stage."""
