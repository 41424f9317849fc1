"""The store of a home, open for the time of one command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from hermes_agent.app.household import open_store_of
from hermes_agent.cli.output import remark
from hermes_agent.cli.surface import Surface
from hermes_agent.store.database import Store

T = TypeVar("T")


@asynccontextmanager
async def lookup_session(surface: Surface) -> AsyncIterator[Store]:
    """The store that the settings name. Raises `ConfigError`, `HomeError`, `StoreError`."""
    home = surface.home.ensure()
    store = await open_store_of(home, surface.loaded.usable().value.store)
    if store.notice:
        remark(store.notice)
    try:
        yield store
    finally:
        await store.close()


def with_store(surface: Surface, act: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store, act, close it."""

    async def run() -> T:
        async with lookup_session(surface) as store:
            return await act(store)

    return asyncio.run(run())
