"""Changed webhook routes without a restart: config.yaml and .env are read again when they were written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hermes_agent.app.runtime import Runtime
from hermes_agent.app.serving.settings import WebhookSettings
from hermes_agent.app.settings import Settings
from hermes_agent.core.errors import HermesError
from hermes_agent.host.config import load
from hermes_agent.host.late import late
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

WATCHING = "hermes_agent.host.watching:watching"
REST_SECONDS = 0.2
"""How long a file must be left alone before it is read: editors write more than once."""


@asynccontextmanager
async def following(runtime: Runtime, take: Callable[[WebhookSettings], None]) -> AsyncIterator[None]:
    """Have `take` told of the routes whenever config.yaml or .env is written, until the block ends; broken settings
    change nothing, and that is logged."""
    home, wanted = runtime.home, asyncio.Event()
    names = {home.config_file.name, home.env_file.name}
    task = spawn(_follow(runtime, take, wanted), name="webhook routes")
    try:
        with late(WATCHING)(home.root, lambda written: wanted.set() if written in names else None):
            yield
    finally:
        task.cancel()


async def _follow(runtime: Runtime, take: Callable[[WebhookSettings], None], wanted: asyncio.Event) -> None:
    known = runtime.settings.webhooks
    while True:
        await wanted.wait()
        await asyncio.sleep(REST_SECONDS)
        wanted.clear()
        # Boundary: one job.
        try:
            new = await asyncio.to_thread(_read, runtime)
            if new is not None and new != known:
                take(new)
                log.info("the webhook routes have changed: %s", ", ".join(sorted(new.routes)) or "there are none")
                known = new
        except HermesError as error:
            log.warning("the webhook routes of before stay in force: %s", error)


def _read(runtime: Runtime) -> WebhookSettings | None:
    """The settings as they are now, with their secrets; None for broken ones. Raises `HermesError`."""
    loaded = load(runtime.home, Settings)
    if loaded.problems:
        log.warning("the webhook routes of before stay in force: %s", loaded.problems[0])
        return None
    runtime.secrets.reread()
    return loaded.value.webhooks
