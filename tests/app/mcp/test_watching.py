"""Resources of servers that are watched: a note beside the next message says which changed."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from hermes_agent.core.errors import BadArguments, ToolError
from hermes_agent.tools.mcp.listing import Lost
from tests.app.mcp.calling import MODERN, ODD, PLAIN, Calling, calling, plain


async def news(call: Calling, words: str) -> None:
    async with asyncio.timeout(5):
        while words not in call.source.news(call.context().session):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("script", [PLAIN, MODERN])
async def test_a_watched_resource_that_changes_is_told(tmp_path: Path, script: Path):
    async with calling(tmp_path, {"fix": plain(script)}) as call:
        assert await call("mcp_resource", action="watch", server="fix", uri="note://one") != ""
        assert call.source.news(call.context().session) == ""

        await call("mcp__fix__touch")
        await news(call, "these changed: fix note://one (1 time).")
        await call("mcp__fix__touch")
        await news(call, "(2 times)")
        assert call.source.news("another") == ""

        for process in call.processes("fix"):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await call("mcp_resource", action="read", server="fix", uri="note://one")
        await news(call, "(3 times)")  # Nobody knows whether it changed meanwhile.
        await call("mcp__fix__touch")
        await news(call, "(4 times)")


async def test_a_subscription_that_the_server_ends_is_made_anew_and_what_it_missed_is_told(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(MODERN)}) as call:
        await call("mcp_resource", action="watch", server="fix", uri="note://one")
        assert await call("mcp__fix__hush") == "hushed"

        await news(call, "(2 times)")  # It ended, and began anew: nobody knows what changed between.
        await call("mcp__fix__touch")
        await news(call, "(3 times)")
        async with asyncio.timeout(5):
            while "mcp__fix__unheard" not in call.tools():
                await asyncio.sleep(0.01)
        await call("mcp__fix__more")
        async with asyncio.timeout(5):
            while "mcp__fix__later" not in call.tools():
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["nobody used it", "it died"])
async def test_what_is_watched_no_more_is_told_until_it_is_watched_again(tmp_path: Path, how: str):
    async with calling(tmp_path, {"fix": plain(MODERN, idle=0.5 if how == "nobody used it" else 60.0)}) as call:
        await call("mcp_resource", action="watch", server="fix", uri="note://one")
        assert call.source.news(call.context().session) == ""
        for process in call.processes("fix") if how == "it died" else ():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await news(call, "Not watched now, as the connection ended")

        await call("mcp_resource", action="watch", server="fix", uri="note://one")
        assert call.source.news(call.context().session) == ""
        await call("mcp__fix__touch")
        await news(call, "(1 time)")


async def test_what_cannot_be_watched_is_a_sentence_and_watching_is_bounded(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(), "odd": plain(ODD)}) as call:
        with pytest.raises(ToolError, match="Method not found"):
            await call("mcp_resource", action="watch", server="odd", uri="x://one")
        with pytest.raises(BadArguments, match="`uri` has to be given"):
            await call("mcp_resource", action="watch", server="fix")
        for number in range(20):
            await call("mcp_resource", action="watch", server="fix", uri=f"note://{number}")
        with pytest.raises(ToolError, match="20 resources are watched at most"):
            await call("mcp_resource", action="watch", server="fix", uri="note://20")


async def test_a_server_that_tells_of_what_nobody_watches_is_not_remembered(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        await call("mcp__fix__touch")
        await call("mcp_resource", action="watch", server="fix", uri="note://two")
        await call("mcp__fix__touch")
        await call("mcp_resource", action="read", server="fix", uri="note://two")

        assert [place.watched for place in call.source.servers._places.values()] == [{"note://two": 0}]


async def test_watching_ends_with_the_connection_that_it_waits_for(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(MODERN)}) as call:
        servers = call.source.servers
        async with servers.using(servers.servers["fix"], str(call.workspace)) as connection:
            pass
        for process in call.processes("fix"):
            os.kill(process, signal.SIGSTOP)  # It never agrees.
        watching = asyncio.create_task(connection.ask("watch", "note://one"))
        await asyncio.sleep(0.1)
        await connection.close()

        with pytest.raises(Lost, match="it was closed"):
            async with asyncio.timeout(5):
                await watching
