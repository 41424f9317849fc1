"""One process that calls a server which wants a sign-in, again and again: `renewing_process.py FOLDER URL SECONDS`. It
prints how often it did, and how often that failed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hermes_agent.core.errors import HermesError
from hermes_agent.tools.mcp.settings import McpServerSettings
from tests.app.mcp.calling import calling


async def main(folder: Path, url: str, seconds: float) -> None:
    settings = McpServerSettings(url=url, auth="oauth", trust="hints")
    loop, done, failed = asyncio.get_running_loop(), 0, 0
    until = loop.time() + seconds
    async with calling(folder, {"s": settings}, look=False) as call:
        while loop.time() < until:
            try:
                done += await call("mcp__s__add") == "5"
            except HermesError as error:
                failed += 1
                print(error, file=sys.stderr)
            await asyncio.sleep(0.05)
    print(done, failed)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
