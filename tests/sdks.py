"""The vendors' own clients, connected to our model servers."""

import contextlib
from collections.abc import AsyncIterator

import anthropic
import openai

from hermes_agent.testing.model_servers import KEY, ModelServer, serving


@contextlib.asynccontextmanager
async def openai_talk(model: ModelServer, key: str = KEY) -> AsyncIterator[tuple[ModelServer, openai.AsyncOpenAI]]:
    """The server, and OpenAI's client of it; no retries."""
    async with (
        serving(model) as server,
        openai.AsyncOpenAI(base_url=server.url, api_key=key, max_retries=0, timeout=5) as client,
    ):
        yield server, client


@contextlib.asynccontextmanager
async def anthropic_talk(
    model: ModelServer, key: str = KEY
) -> AsyncIterator[tuple[ModelServer, anthropic.AsyncAnthropic]]:
    """The server, and Anthropic's client of it; no retries."""
    async with (
        serving(model) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key=key, max_retries=0, timeout=5) as client,
    ):
        yield server, client
