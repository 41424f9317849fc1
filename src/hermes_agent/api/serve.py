"""The API server as a process of its own: a system at work, and the server in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from hermes_agent.api.figures import Figures
from hermes_agent.api.keys import Keys, open_keys
from hermes_agent.api.server import api_server, webhook_server
from hermes_agent.app.options import Tape
from hermes_agent.app.runtime import Runtime
from hermes_agent.app.serving.settings import API_KEY, SERVED
from hermes_agent.app.settings import Settings
from hermes_agent.app.wiring import Options, open_runtime
from hermes_agent.core.inbound import Standing
from hermes_agent.host.config import Loaded
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets

NO_API = "The API is not served: it has no key. `hermes api key` makes one."


async def serve(
    home: Home,
    loaded: Loaded[Settings],
    secrets: Secrets,
    say: Callable[[str], None],
    *,
    until_told: Callable[[], Awaitable[object]],
    tape: Tape | None = None,
) -> None:
    """Serve the API of this home, and its webhooks, until told to end; `tape` as in `Options`. Raises
    `ConfigError`."""
    keys = keys_of(loaded.value, secrets.get)
    standing = Options().standing if keys is None else standing_by(keys, Options().standing)
    options = Options(queue=SERVED, own_only=False, channel="api", standing=standing, reviews=True, tape=tape)
    async with open_runtime(home, options) as runtime:
        if runtime.loaded.notice:
            say(runtime.loaded.notice)
        async with servers(runtime, keys, say) as url:
            if keys is None:
                say(NO_API)
            if runtime.hooks is not None:
                await runtime.hooks.fire("gateway:start", {"url": url})
            await until_told()


def keys_of(settings: Settings, secret: Callable[[str], str]) -> Keys | None:
    """The keys of the API; None where it has none and only webhooks are to be served, which prove themselves. Raises
    `ConfigError`."""
    if settings.webhooks.enabled and not settings.api.keys and not secret(API_KEY):
        return None
    return open_keys(settings.api, secret)


@asynccontextmanager
async def servers(runtime: Runtime, keys: Keys | None, say: Callable[[str], None]) -> AsyncIterator[str]:
    """The API of a system for whoever has one of the keys (None: no API), and its webhooks where they are enabled,
    until the block ends; where the API is (empty: nowhere). Raises `ConfigError`."""
    figures, url = Figures(), ""
    async with AsyncExitStack() as closing:
        if keys is not None:
            place = await closing.enter_async_context(api_server(runtime, keys, figures))
            url = place.url
            say(f"The API answers at {url}/v1")
        if runtime.settings.webhooks.enabled:
            place = await closing.enter_async_context(webhook_server(runtime, figures))
            say(f"Webhooks are taken at {place.url}/webhooks")
        yield url


def standing_by(keys: Keys, otherwise: Callable[[str], Standing]) -> Callable[[str], Standing]:
    """What a principal is: by the key that they came in with, or as others say."""

    def standing(principal: str) -> Standing:
        found = keys.standing(principal)
        return otherwise(principal) if found is None else found

    return standing
