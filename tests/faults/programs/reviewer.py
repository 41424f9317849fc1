"""A process that reviews what is in line, over and over: `python reviewer.py HOME`; it prints a line when it begins."""

import asyncio
import sys
from pathlib import Path

from hermes_agent.app.opening import open_system
from hermes_agent.host.paths import Home


async def main(root: Path) -> None:
    async with open_system(Home(root=root, base=root)) as runtime:
        print("begun", flush=True)
        await runtime.learner.run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
