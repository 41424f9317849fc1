"""Runs an operation for the person at the terminal, on the opened home (offline) or on the whole system."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, nullcontext
from typing import TYPE_CHECKING, TypeVar

from hermes_agent.app.operations.access import Access, OfflineSystem, open_offline
from hermes_agent.cli.output import remark
from hermes_agent.host.late import late
from hermes_agent.host.logs import ROOT, open_log
from hermes_agent.host.paths import current_folder

if TYPE_CHECKING:
    from hermes_agent.app.system import System
from hermes_agent.cli.surface import Surface

T = TypeVar("T")


@asynccontextmanager
async def offline(surface: Surface) -> AsyncIterator[Access[OfflineSystem]]:
    """Context manager: access to the home's data without runs. Raises `ConfigError`, `HomeError`, `StoreError`."""
    home, loaded = surface.home.ensure(), surface.loaded.usable()
    # Warnings belong into the log, also without a system, which has it open.
    is_open = logging.getLogger(ROOT).hasHandlers()
    with nullcontext() if is_open else closing(open_log(home.log_file, lambda text: surface.secrets.redact(text))):
        async with open_offline(home, loaded, str(current_folder())) as access:
            if access.system.notice:
                remark(access.system.notice)
            yield access


def ask(surface: Surface, operation: Callable[[Access[OfflineSystem]], Awaitable[T]]) -> T:
    """Run one operation that starts no run."""

    async def run() -> T:
        async with offline(surface) as access:
            return await operation(access)

    return asyncio.run(run())


def ask_system(
    surface: Surface, operation: Callable[[Access[System]], Awaitable[T]], model: str = "", **options: object
) -> T:
    """Do one operation that needs a whole system, whose sessions are answered by `model` (empty: the usual one), with
    other `options` of the process."""

    async def run() -> T:
        opening = late("hermes_agent.app.opening")
        async with opening.open_system(surface.home.ensure(), opening.Options(model=model, **options)) as system:
            return await operation(Access(system=system, who=system.owner, folder=str(current_folder())))

    return asyncio.run(run())
