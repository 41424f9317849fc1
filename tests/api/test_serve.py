"""The API and webhooks go by the settings: where they listen, whom they let in, which routes there are."""

import asyncio
import socket
from pathlib import Path

import httpx2
import pytest

from hermes_agent.api.serve import Servers
from hermes_agent.app.opening import open_system
from hermes_agent.app.reloading import Reloading
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.paths import Home

KEY, OTHER = "first-key-0123456789", "other-key-0123456789"
ROUTE = "webhooks:\n  enabled: true\n  port: 0\n  routes:\n    push: {secret: HOOK_SECRET}\n"


class Here:
    """A process whose servers go by a home."""

    def __init__(self, home: Home, servers: Servers, reloading: Reloading, said: list[str]) -> None:
        self.home, self.servers, self.reloading, self.said = home, servers, reloading, said

    async def set(self, settings: str, *secrets: str) -> str:
        """Save these, and what is wrong with them."""
        self.home.config_file.write_text(f"model: {{default: demo/scripted}}\n{settings}")
        self.home.env_file.write_text("".join(f"{secret}\n" for secret in secrets))
        self.home.env_file.chmod(0o600)
        await self.reloading.read()
        return self.reloading.notice

    async def asked(self, key: str) -> int:
        """The status of a question with that key."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            got = await client.get(f"{self.servers.url}/v1/models", headers={"authorization": f"Bearer {key}"})
        return got.status_code

    async def reported(self, route: str) -> int:
        """The status of an unsigned report."""
        url = self.said[-1].split()[-1]
        async with httpx2.AsyncClient(trust_env=False) as client:
            return (await client.post(f"{url}/{route}", json={})).status_code


@pytest.fixture
async def here(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)
    home.config_file.write_text("model: {default: demo/scripted}\n")
    said: list[str] = []
    async with open_system(home) as runtime:
        servers = Servers(runtime, said.append)
        yield Here(home, servers, Reloading(runtime, [servers], lambda: None), said)
        await servers.close()
        await servers.follow(runtime.settings)
        assert servers.url == ""


async def test_the_api_begins_lets_in_whom_it_is_told_to_and_ends(here: Here):
    assert "API_SERVER_KEY is not set" in await here.set("api: {enabled: true, port: 0}\n")
    assert not here.said

    assert not await here.set("api: {enabled: true, port: 0}\n", f"API_SERVER_KEY={KEY}")
    first = here.servers.url
    assert [await here.asked(KEY), await here.asked(OTHER)] == [200, 401]

    assert not await here.set("api: {enabled: true, port: 0}\n", f"API_SERVER_KEY={OTHER}")
    assert here.servers.url == first
    assert [await here.asked(KEY), await here.asked(OTHER)] == [401, 200]

    assert not await here.set("api: {enabled: false, port: 0}\n")
    assert not here.servers.url


async def test_a_route_that_is_added_is_there_and_one_that_is_broken_changes_nothing(here: Here):
    await here.set(ROUTE, "HOOK_SECRET=a-secret-of-the-hooks")
    assert [await here.reported("push"), await here.reported("other")] == [401, 404]

    await here.set(f"{ROUTE}    other: {{secret: HOOK_SECRET}}\n", "HOOK_SECRET=a-secret-of-the-hooks")
    assert await here.reported("other") == 401

    wrong = await here.set(f"{ROUTE}    third: {{filters: {{a: '('}}}}\n", "HOOK_SECRET=a-secret-of-the-hooks")
    assert "not a regular expression" in wrong
    assert [await here.reported("other"), await here.reported("third")] == [401, 404]
    assert len(here.said) == 1


async def test_where_nobody_can_listen_the_server_stays_where_it_was(here: Here):
    await here.set("api: {enabled: true, port: 0}\n", f"API_SERVER_KEY={KEY}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        wrong = await here.set(f"api: {{enabled: true, port: {port}}}\n", f"API_SERVER_KEY={KEY}")
    assert "cannot be listened on" in wrong
    assert await here.asked(KEY) == 200

    assert not await here.set(f"api: {{enabled: true, port: {port}}}\n# again\n", f"API_SERVER_KEY={KEY}", "A=b")
    assert here.servers.url == f"http://127.0.0.1:{port}"
    assert not await here.set(f"api: {{enabled: true, port: {port}, host: localhost}}\n", f"API_SERVER_KEY={KEY}")
    assert await here.asked(KEY) == 200
    with pytest.raises(ConfigError):
        here.servers.check(here.reloading._runtime.settings, lambda _: "")


async def test_what_is_told_twice_at_once_is_done_once_and_an_end_meanwhile_leaves_nothing_open(here: Here):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here.home.config_file.write_text(f"model: {{default: demo/scripted}}\napi: {{enabled: true, port: {port}}}\n")
    here.home.env_file.write_text(f"API_SERVER_KEY={KEY}\n")
    here.home.env_file.chmod(0o600)
    async with open_system(here.home) as runtime:
        servers = Servers(runtime, here.said.append)
        async with asyncio.TaskGroup() as group:
            group.create_task(servers.follow(runtime.settings))
            group.create_task(servers.follow(runtime.settings))
        assert len(here.said) == 1
        await servers.close()

        late = Servers(runtime, here.said.append)
        async with asyncio.TaskGroup() as group:
            group.create_task(late.follow(runtime.settings))
            group.create_task(late.close())
        assert late.url == ""
        with socket.socket() as again:
            again.bind(("127.0.0.1", port))
