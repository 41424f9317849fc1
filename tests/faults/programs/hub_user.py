"""A program that installs, changes, updates and uninstalls one skill without end, until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hermes_agent.skills.hub.updating import updated
from tests.skills.hub.origin import AGENT, OWNER, Place, hub_at

TAG = {"a": "b", "b": "a"}


async def work(root: Path) -> None:
    """The skill `tea` at the tags a and b in turn, changed in between."""
    async with hub_at(root) as place:
        version = "a"
        while True:
            print("ready", flush=True)
            version = await turn(place, version)


async def turn(place: Place, version: str) -> str:
    hub = place.hub
    async with hub.alone():
        if "tea" not in hub.lock.get().skills:
            await hub.install(await place.hold("tea", ref=version), OWNER)
    print("ready", flush=True)
    if await hub.copy("tea") is None:
        await hub.writer.patch("tea", "Boil", "Simmer", AGENT)
    version = TAG[version]
    async with hub.alone():
        await updated(hub, await place.hold("tea", ref=version), OWNER)
    async with hub.alone():
        await hub.uninstall("tea", OWNER)
    return version


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1])))
