"""Requests signed for Bedrock, judged by a server that checks signatures by itself."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_agent.core.errors import AuthRefused
from hermes_agent.core.messages import ModelRequest, Reply, said
from hermes_agent.host.http import Http
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.route import Route, choose
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.signing import aws
from hermes_agent.testing.model_servers import ModelServer, serving
from tests.doubles.aws_signature import scope
from tests.doubles.model_servers import bedrock_model
from tests.providers.asking import PREFIX, Book, HastyClock

MODEL = "bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0"
ROOT = Path(__file__).parents[3]
REQUEST = ModelRequest(
    call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=PREFIX, messages=[said("Hallo, 世界")]
)


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty home for AWS, and no question to the machine that this could run on."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    aws._session.cache_clear()
    yield tmp_path
    aws._session.cache_clear()


def route_to(address: str, **secrets: str) -> Route:
    return choose(ModelSettings(default=MODEL, base_url=address), secrets.get)


@asynccontextmanager
async def talking(**secrets: str) -> AsyncIterator[tuple[ModelServer, Broker]]:
    model = bedrock_model([Say("Yes."), Say("Yes.")], keys=("AKID",), secrets={"AKID": "secret"})
    async with serving(model) as server:
        http = Http()
        settings = ModelSettings(max_retries=0)
        route = route_to(server.url, **secrets)
        try:
            yield server, Broker(single(route, http, HastyClock(), settings), Book())
        finally:
            await http.close()


async def ask(broker: Broker) -> Reply:
    *_, reply = [item async for item in broker.ask(REQUEST)]
    return reply


async def test_a_request_is_signed_with_the_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a token")
    async with talking(AWS_REGION="eu-west-1") as (server, broker):
        assert (await ask(broker)).message.text == "Yes."
        (exchange,) = server.exchanges

    assert scope(exchange.request) == ("eu-west-1", "bedrock")
    assert exchange.request.headers["x-amz-security-token"] == "a token"


async def test_a_request_is_signed_with_the_credentials_of_a_file(account: Path):
    (account / "credentials").write_text("[default]\naws_access_key_id = AKID\naws_secret_access_key = secret\n")
    async with talking() as (server, broker):
        await ask(broker)

    assert scope(server.exchanges[0].request) == ("us-east-1", "bedrock")


async def test_a_bearer_key_is_preferred_and_nothing_is_signed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    async with talking(AWS_BEARER_TOKEN_BEDROCK="AKID") as (server, broker):
        await ask(broker)

    assert server.exchanges[0].request.headers["authorization"] == "Bearer AKID"


async def test_a_wrong_secret_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    async with talking() as (_server, broker):
        with pytest.raises(AuthRefused, match="signature we calculated does not match"):
            await ask(broker)


async def test_without_credentials_it_is_said_what_to_do():
    async with talking() as (server, broker):
        with pytest.raises(AuthRefused, match="aws configure"):
            await ask(broker)
    assert server.exchanges == []


async def test_credentials_that_cannot_be_read_are_a_sentence(account: Path, monkeypatch: pytest.MonkeyPatch):
    (account / "config").write_text("[profile other]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_PROFILE", "gone")
    async with talking() as (_server, broker):
        with pytest.raises(AuthRefused, match="gone"):
            await ask(broker)


ASKING = """
import asyncio, sys
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.vendors import VENDORS
from tests.providers.asking import DIALECTS, talking

async def main():
    for spoken in DIALECTS:
        async with talking(spoken, [Say("Hi")]) as talk:
            assert (await talk.ask()).message.text == "Hi"

asyncio.run(main())
assert all(load_vendor(name) for name in VENDORS)
print([name for name in ("botocore", "boto3", "google.auth", "cryptography") if name in sys.modules])
"""


def test_only_a_request_without_a_key_loads_what_signs_it():
    """Not a bearer key's request, nor any other vendor's."""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "."))
    done = subprocess.run(
        [sys.executable, "-c", ASKING],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=25,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
