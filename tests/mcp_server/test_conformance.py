"""The official conformance suite drives our server: a few scenarios by default, all that both protocols require with
`--full`. Where the suite is, `tests/app/mcp/test_conformance.py` says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
import pytest

from hermes_agent.host.inbound.listener import listen
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.host.tasks import in_own_thread
from tests.api.served import OWNER_KEY, served
from tests.app.mcp.test_conformance import MAIN, NEWER, NODE, OLDER, ROOT, pytestmark
from tests.app.place import counting

pytestmark = [*pytestmark]
FEW = [(OLDER, "elicitation-sep1034-defaults"), (NEWER, "server-stateless"), (NEWER, "dns-rebinding-protection")]
REQUIRED = {OLDER: 30, NEWER: 37}
FREE = [
    *((OLDER, name) for name in ("server-initialize", "ping", "tools-list", "resources-list", "prompts-list")),
    *((NEWER, name) for name in ("tools-list", "resources-list", "prompts-list", "caching")),
    *((version, "dns-rebinding-protection") for version in (OLDER, NEWER)),
    (OLDER, "server-session-lifecycle"),
    (NEWER, "sep-2164-resource-not-found"),
]
"""Scenarios that need no tools of the suite."""


def said_of(url: str, *words: str) -> str:
    command = [str(NODE), str(MAIN), "server", "--url", url, *words]
    done = subprocess.run(command, capture_output=True, timeout=110, check=False)
    return done.stdout.decode() + done.stderr.decode()


@contextmanager
def fixtures() -> Iterator[str]:
    """The address of a server with the suite's tools, in a process of its own."""
    program = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fixture_offer.py"))],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert program.stdout is not None
    with program:
        yield program.stdout.readline().decode().strip()
        program.kill()


@pytest.mark.parametrize(("version", "scenario"), FEW)
def test_the_server_conforms(version: str, scenario: str):
    with fixtures() as url:
        said = said_of(url, "--scenario", scenario, "--spec-version", version)

    assert " 0 failed" in said, said[-3000:]


@pytest.mark.parametrize("version", REQUIRED)
def test_the_server_conforms_in_everything_required(version: str, full: bool, tmp_path: Path):
    if not full:
        pytest.skip("all scenarios run with --full")
    with fixtures() as url:
        said = said_of(url, "--requirements", version, "-o", str(tmp_path))
    failed = dict(re.findall(r"[✓✗] ([\w-]+): \d+ passed, (\d+) failed", said))
    unscored = set(re.findall(r"  [✓✗] ([\w-]+) \(", said))

    assert len(failed) - len(unscored) == REQUIRED[version]
    assert [name for name, count in failed.items() if count != "0" and name not in unscored] == [], said[-3000:]


@asynccontextmanager
async def keyed(url: str) -> AsyncIterator[str]:
    """The address of one that passes all on to Hermes with the owner's key, which the suite does not send."""
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:

        async def forward(request: Request) -> Response:
            body = b"".join([piece async for piece in request.pieces])
            headers = {**request.headers, "authorization": f"Bearer {OWNER_KEY}"}
            headers.pop("content-length", None)
            outgoing = http.build_request(request.method, f"{url}/mcp", headers=headers, content=body)
            answer = await http.send(outgoing, stream=True)
            given = {name: value for name, value in answer.headers.items() if name != "transfer-encoding"}
            return Response(status=answer.status_code, headers=given, body=answer.aiter_raw())

        async with listen(forward) as place:
            yield f"{place.url}/mcp"


@pytest.mark.parametrize(("version", "scenario"), FREE)
async def test_hermes_itself_conforms(version: str, scenario: str, full: bool, tmp_path: Path):
    if not full:
        pytest.skip("all scenarios run with --full")
    async with served(tmp_path, counting) as server, keyed(server.url) as url:
        said = await in_own_thread(lambda: said_of(url, "--scenario", scenario, "--spec-version", version))

    assert " 0 failed" in said, said[-3000:]
