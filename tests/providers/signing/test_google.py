"""Tokens for Vertex AI: a real service account's file, a token server, and a server that wants the token."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hermes_agent.core.errors import AuthRefused, NoModel
from hermes_agent.core.messages import ModelRequest, said
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.route import choose
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.signing import google
from hermes_agent.testing.model_servers import serving
from tests.doubles.gemini_wire import GeminiStyle
from tests.doubles.model_servers import gemini_model
from tests.providers.asking import PREFIX, Book, HastyClock

TOKEN = "ya29.a-token"
BASE = "/v1/projects/my-project/locations/global/publishers/google"
REQUEST = ModelRequest(
    call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=PREFIX, messages=[said("Hallo, 世界")]
)
SETTINGS = ModelSettings(default="vertex", max_retries=0)


class TokenServer:
    """Gives a token for an assertion; remembers what it was asked."""

    def __init__(self, status: int = 200) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self._status = status

    async def handle(self, request: Request) -> Response:
        self.asked.append(parse_qs(request.body.decode()))
        good = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
        bad = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
        body = json.dumps(good if self._status == 200 else bad).encode()
        return Response(status=self._status, headers={"content-type": "application/json"}, body=body)


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Where the service account's file is, and no question to the machine that this could run on."""
    file = tmp_path / "account.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    google._credentials.cache_clear()
    yield file
    google._credentials.cache_clear()


def write_account(file: Path, token_address: str) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    plain = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "1",
        "private_key": pem,
        "client_email": "hermes@my-project.iam.gserviceaccount.com",
        "token_uri": token_address,
    }
    file.write_text(json.dumps(plain))


@asynccontextmanager
async def talking(file: Path | None, tokens: TokenServer) -> AsyncIterator[Broker]:
    model = gemini_model([Say("One."), Say("One.")], keys=(TOKEN,), style=GeminiStyle(base=BASE, call_ids=False))
    async with serving(model) as server, serve(tokens.handle) as token_server:
        if file is not None:
            write_account(file, token_server.url)
        http = Http()
        names = {"VERTEX_BASE_URL": server.url}
        route = choose(SETTINGS, names.get)
        try:
            yield Broker(single(route, http, HastyClock(), SETTINGS), Book())
        finally:
            await http.close()


async def ask(broker: Broker) -> str:
    *_, reply = [item async for item in broker.ask(REQUEST)]
    return reply.message.text


async def test_a_token_is_got_once_and_shown_with_every_request(account: Path):
    tokens = TokenServer()
    async with talking(account, tokens) as broker:
        assert [await ask(broker), await ask(broker)] == ["One.", "One."]

    assert len(tokens.asked) == 1
    assert tokens.asked[0]["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]


async def test_a_revoked_account_is_a_sentence(account: Path):
    async with talking(account, TokenServer(status=400)) as broker:
        with pytest.raises(AuthRefused, match="expired or revoked"):
            await ask(broker)


async def test_a_token_server_that_is_not_there_is_a_sentence(account: Path):
    async with talking(None, TokenServer()) as broker:
        write_account(account, "http://127.0.0.1:9")
        with pytest.raises(AuthRefused, match="cannot be asked"):
            await ask(broker)


async def test_without_credentials_it_is_said_which(account: Path):
    async with talking(None, TokenServer()) as broker:
        with pytest.raises(AuthRefused, match=account.name):
            await ask(broker)


def test_the_address_is_that_of_the_project_and_the_region():
    names = {"GOOGLE_CLOUD_PROJECT": "my-project", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
    place = "projects/my-project/locations"

    assert choose(SETTINGS, names.get).base_url == (
        f"https://europe-west4-aiplatform.googleapis.com/v1/{place}/europe-west4/publishers/google"
    )
    assert choose(SETTINGS, {"GOOGLE_CLOUD_PROJECT": "my-project"}.get).base_url == (
        f"https://aiplatform.googleapis.com/v1/{place}/global/publishers/google"
    )
    with pytest.raises(NoModel, match="needs GOOGLE_CLOUD_PROJECT"):
        choose(SETTINGS, {}.get)
    with pytest.raises(NoModel, match=r"no region `europe-west44` .*GOOGLE_CLOUD_LOCATION.*mean `europe-west4`"):
        choose(SETTINGS, {**names, "GOOGLE_CLOUD_LOCATION": "europe-west44"}.get)
