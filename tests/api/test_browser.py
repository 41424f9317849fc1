"""Pages of other sites in a real browser: nothing of the API is to be read by them, whatever name they took."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from hermes_agent.providers.demo.script import Say
from tests.api.served import OWNER_KEY, Server, served

DRIVER = shutil.which("chromedriver")
EVIL, EVIL_ADDRESS = "evil.example", "127.0.0.2"
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGE = b"<!doctype html><title>evil</title><p>Look, a cat."
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
FETCH = """
const [url, options, done] = arguments;
fetch(url, options).then(async answer => done([answer.type, answer.status, await answer.text()]))
    .catch(error => done([String(error)]));
"""
WITH_KEY = {"headers": {"authorization": f"Bearer {OWNER_KEY}"}}

pytestmark = [
    pytest.mark.skipif(DRIVER is None, reason="no chromedriver (apt install chromium-driver)"),
    pytest.mark.timeout(120),
]


class Site:
    """The attacker's server on an address of its own; once `rebound`, its name leads to the API."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.rebound = False

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.rebound:
            there, back = await asyncio.open_connection("127.0.0.1", self.port)
            async with asyncio.TaskGroup() as group:
                group.create_task(passed_on(reader, back))
                group.create_task(passed_on(there, writer))
            return
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER % (len(PAGE), PAGE))
        await writer.drain()
        writer.close()


async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
    writer.close()


class Browser:
    """A page in Chromium, driven by WebDriver (https://www.w3.org/TR/webdriver2/)."""

    def __init__(self, client: httpx2.AsyncClient, session: str) -> None:
        self._client = client
        self.session = f"/session/{session}"

    async def tell(self, command: str, body: object) -> object:
        answer = await self._client.post(f"{self.session}/{command}", json=body)
        return answer.raise_for_status().json()["value"]

    async def fetch(self, url: str, options: object) -> object:
        """What a script of the page gets: type, status and text; or the error alone."""
        return await self.tell("execute/async", {"script": FETCH, "args": [url, options]})


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Browser]:
    driver = await asyncio.create_subprocess_exec(str(DRIVER), "--port=0", stdout=asyncio.subprocess.PIPE)
    assert driver.stdout is not None
    try:
        port = None
        while port is None:
            port = re.search(rb"started successfully on port (\d+)", await driver.stdout.readline())
        arguments = [*QUIET, f"--user-data-dir={folder}", f"--host-resolver-rules=MAP {EVIL} {EVIL_ADDRESS}"]
        asked = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}}
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{int(port[1])}", trust_env=False, timeout=60
        ) as client:
            made = (await client.post("/session", json=asked)).raise_for_status().json()["value"]
            page = Browser(client, made["sessionId"])
            try:
                yield page
            finally:
                await client.delete(page.session)
    finally:
        driver.terminate()
        await driver.wait()


@asynccontextmanager
async def visited(folder: Path) -> AsyncIterator[tuple[Server, Site, Browser]]:
    """An API with a conversation in it, and a browser in which the attacker's page is open."""
    async with served(folder, [Say("A secret of the house.")]) as server:
        assert (await server.chat("What is in the house?")).status_code == 200
        site = Site(urlsplit(server.url).port or 0)
        async with await asyncio.start_server(site, EVIL_ADDRESS, site.port), browser(folder / "profile") as page:
            await page.tell("url", {"url": f"http://{EVIL}:{site.port}/"})
            assert await page.fetch("/", {}) == ["basic", 200, PAGE.decode()]
            yield server, site, page


@pytest.mark.parametrize("path", ["/v1/sessions", "/health", "/openapi.json", "/metrics"])
async def test_a_page_whose_name_was_rebound_to_this_machine_reads_nothing(tmp_path, path):
    async with visited(tmp_path) as (server, site, page):
        assert (await server.ask("GET", path)).status_code == 200
        site.rebound = True
        kind, status, text = await page.fetch(path, WITH_KEY)
        written = await page.fetch("/v1/chat/completions", {**WITH_KEY, "method": "POST", "body": "{}"})

    assert (kind, status) == ("basic", 421)
    assert "does not have that name" in text
    assert written[1] == 421


async def test_a_page_of_another_site_neither_reads_nor_says_anything(tmp_path):
    async with visited(tmp_path) as (server, _, page):
        before = (await server.ask("GET", "/v1/sessions")).json()
        url = f"{server.url}/v1/chat/completions"
        body = '{"messages": [{"role": "user", "content": "Send me all you know"}]}'
        json = {"authorization": f"Bearer {OWNER_KEY}", "content-type": "application/json"}
        answers = [
            await page.fetch(f"{server.url}/v1/sessions", WITH_KEY),
            await page.fetch(url, {"method": "POST", "body": body, "headers": json}),
            await page.fetch(url, {"method": "POST", "body": body, "mode": "no-cors"}),
        ]
        after = (await server.ask("GET", "/v1/sessions")).json()

    assert answers == [["TypeError: Failed to fetch"], ["TypeError: Failed to fetch"], ["opaque", 0, ""]]
    assert after == before
