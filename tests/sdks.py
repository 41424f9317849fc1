"""The vendors' own clients, connected to our model servers."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
import boto3
import botocore.config
import openai
from google import genai
from mistralai.client import Mistral

from hermes_agent.testing.model_servers import KEY, ModelServer, serving, serving_in_thread

SECRET = "test-secret"  # of the access key `KEY`


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


@contextlib.asynccontextmanager
async def gemini_talk(
    model: ModelServer, key: str = KEY
) -> AsyncIterator[tuple[ModelServer, genai.client.AsyncClient]]:
    """The server, and Google's client of it; no retries."""
    async with serving(model) as server:
        address = server.url.removesuffix("/v1beta")
        options = genai.types.HttpOptions(base_url=address, api_version="v1beta", timeout=5_000)
        client = genai.Client(api_key=key, http_options=options)
        try:
            yield server, client.aio
        finally:
            await client.aio.aclose()
            client.close()


@contextlib.contextmanager
def bedrock_talk(
    model: ModelServer, secret: str = SECRET, region: str = "us-east-1"
) -> Iterator[tuple[ModelServer, Any]]:
    """The server, and AWS's client of it, which signs with `secret` unless the environment has a bearer key; no
    retries."""
    with serving_in_thread(model) as server:
        options = {"retries": {"max_attempts": 0}, "read_timeout": 5, "connect_timeout": 5}
        session = boto3.Session(aws_access_key_id=KEY, aws_secret_access_key=secret, region_name=region)
        client = session.client("bedrock-runtime", endpoint_url=server.url, config=botocore.config.Config(**options))
        try:
            yield server, client
        finally:
            client.close()


@contextlib.asynccontextmanager
async def mistral_talk(model: ModelServer, key: str = KEY) -> AsyncIterator[tuple[ModelServer, Mistral]]:
    """The server, and Mistral's client of it; no retries."""
    async with (
        serving(model) as server,
        Mistral(api_key=key, server_url=server.url.removesuffix("/v1"), timeout_ms=5_000) as client,
    ):
        yield server, client
