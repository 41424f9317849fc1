"""A channel at the double of a homeserver, and what it heard."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hermes_agent.gateway.channel import Channel, Heard, Invited, Needs, NotNow
from hermes_agent.gateway.channels.matrix import CHANNEL
from tests.contracts.channels import needs
from tests.doubles.homeserver import matrix_platform
from tests.doubles.matrix import MatrixPlatform

ROOM, GROUP, ANN = "!1:hermes.test", "!9:hermes.test", "@ann:hermes.test"


class Hearing:
    """Listens while `listening`; takes invitations of Ann, and of whom `words` names."""

    def __init__(self, platform: MatrixPlatform, given: Needs) -> None:
        self.platform = platform
        self.needs = given
        self.channel: Channel = CHANNEL.make(given)
        self.heard: list[Heard] = []
        self.words = {ANN: "member"}

    async def __call__(self, heard: Heard) -> str:
        self.heard.append(heard)
        return self.words.get(heard.sender.user, "") if isinstance(heard, Invited) else ""

    def of(self, kind: type) -> list:
        return [heard for heard in self.heard if isinstance(heard, kind)]

    async def until(self, kind: type, count: int = 1) -> list:
        await until(lambda: len(self.of(kind)) >= count)
        return self.of(kind)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async def again() -> None:
            while True:
                with suppress(NotNow):
                    await self.channel.listen(self)
                await asyncio.sleep(0.01)

        task = asyncio.create_task(again())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def settled(self) -> None:
        """Return when the homeserver was asked for what comes behind all that happened."""
        await until(lambda: self.platform.reached == len(self.platform.stream))


async def until(ready: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not ready():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def hearing(folder: Path, **options: str) -> AsyncIterator[Hearing]:
    async with matrix_platform() as platform:
        given = needs(folder, {"homeserver": platform.url, **options})
        made = Hearing(platform, given)
        yield made
        await made.channel.close()
        await given.http.close()
