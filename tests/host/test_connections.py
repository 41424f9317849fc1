"""Connections over small pools: the first is filled first, and what is closed gives its place back."""

import asyncio

import httpx2
import pytest

from hermes_agent.host.connections import WIDTH, Spread
from hermes_agent.host.serve import Request, Response, serve


class Slow:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.waiting = 0

    async def __call__(self, request: Request) -> Response:
        self.waiting += 1
        await self.go.wait()
        return Response(body=b"ok")


async def test_pools_are_made_as_they_are_needed_and_emptied_again():
    slow, pools = Slow(), Spread(httpx2.AsyncHTTPTransport, 2)
    async with serve(slow) as server, httpx2.AsyncClient(transport=pools, timeout=10) as client:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(client.get(server.url)) for _ in range(2 * WIDTH + 3)]
            while slow.waiting < 2 * WIDTH:
                await asyncio.sleep(0.01)
            busy = [pool.busy for pool in pools.pools]
            slow.go.set()
        assert {task.result().text for task in asked} == {"ok"}
        assert sum(busy) == 2 * WIDTH + 3
        assert min(busy) >= WIDTH
        assert [pool.busy for pool in pools.pools] == [0, 0]
        await client.get(server.url)
        assert len(pools.pools) == 2


async def test_a_quiet_program_keeps_to_one_pool():
    slow, pools = Slow(), Spread(httpx2.AsyncHTTPTransport, 4)
    slow.go.set()
    async with serve(slow) as server, httpx2.AsyncClient(transport=pools, timeout=10) as client:
        for _ in range(3):
            await client.get(server.url)
        async with client.stream("GET", server.url) as answer:
            assert pools.pools[0].busy == 1
            await answer.aread()
    assert [pool.busy for pool in pools.pools] == [0]


async def test_a_request_that_fails_takes_no_place():
    pools = Spread(httpx2.AsyncHTTPTransport, 1)
    async with httpx2.AsyncClient(transport=pools, timeout=10) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get("http://127.0.0.1:1")
    assert pools.pools[0].busy == 0
