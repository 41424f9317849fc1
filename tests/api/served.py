"""An API server on a temporary home, in front of a model server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from hermes_agent.api.keys import Keys, open_keys
from hermes_agent.api.metrics import Metrics
from hermes_agent.api.serve import api_server
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.settings import SERVED, Settings
from hermes_agent.app.system import System
from hermes_agent.core.events import Entry
from hermes_agent.host.config import load
from hermes_agent.host.secrets import open_secrets
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from hermes_agent.testing.scripted import Script
from tests.app.place import settle_home

OWNER_KEY = "owner-key-0123456789"
MEMBER_KEY = "member-key-0123456789"
OTHER_KEY = "another-key-0123456789"
GUEST_KEY = "guest-key-0123456789"
SECRETS = f"API_SERVER_KEY={OWNER_KEY}\nANNA_KEY={MEMBER_KEY}\nBERT_KEY={OTHER_KEY}\nGAST_KEY={GUEST_KEY}\n"
SETTINGS = """api:
  port: 0
  approvers: [owner, anna, gast]
  keys:
    anna:
      secret: ANNA_KEY
    bert:
      secret: BERT_KEY
    gast:
      secret: GAST_KEY
      standing: guest
"""


@dataclass(frozen=True)
class Server:
    """What a test works with."""

    url: str
    runtime: System
    model: ModelServer
    client: httpx2.AsyncClient
    keys: Keys

    async def ask(
        self, method: str, path: str, body: object = None, *, key: str = OWNER_KEY, headers: Mapping[str, str] = {}
    ) -> httpx2.Response:
        given = {"authorization": f"Bearer {key}", **headers} if key else dict(headers)
        return await self.client.request(method, path, json=body, headers=given)

    async def chat(
        self, *said: str, key: str = OWNER_KEY, headers: Mapping[str, str] = {}, **more: object
    ) -> httpx2.Response:
        """A completion; the words are the user's and the assistant's in turn."""
        roles = ("user", "assistant")
        messages = [{"role": roles[index % 2], "content": text} for index, text in enumerate(said)]
        body = {"messages": messages, **more}
        return await self.ask("POST", "/v1/chat/completions", body, key=key, headers=headers)

    async def log(self, session: str) -> list[Entry]:
        return await self.runtime.store.history.entries(session)


@asynccontextmanager
async def served(
    folder: Path, script: Script, *, more: str = "", api: str = "", options: Options | None = None
) -> AsyncIterator[Server]:
    async with serving(openai_model(script, keys=())) as model:
        home = settle_home(folder / "home", model.url, f"{more}{SETTINGS}{api}")
        home.env_file.write_text(SECRETS)
        home.env_file.chmod(0o600)
        keys = open_keys(load(home, Settings).value.api, open_secrets(home).get)
        chosen = options or Options(queue=SERVED, own_only=False)
        async with (
            open_system(home, chosen) as runtime,
            api_server(runtime, keys, Metrics()) as place,
            httpx2.AsyncClient(base_url=place.url, trust_env=False, timeout=20) as client,
        ):
            yield Server(url=place.url, runtime=runtime, model=model, client=client, keys=keys)


def lines(text: str) -> list[dict[str, Any]]:
    """The JSON of a stream's events."""
    found = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in found if line != "[DONE]"]


async def until(server: Server, run: str, *states: str, key: str = OWNER_KEY) -> dict[str, Any]:
    """The run, once it is in one of these states."""
    async with asyncio.timeout(15):
        while True:
            facts = (await server.ask("GET", f"/v1/runs/{run}", key=key)).json()
            if facts.get("status") in states:
                return facts
            await asyncio.sleep(0.02)
