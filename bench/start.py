"""How soon the program is there: `--version`, and a one-shot question up to its first request on the wire."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, median
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import KEY, ModelServer, openai_model, serving_in_thread

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
TEN_LINES = f"""
import asyncio, sys, httpx2
async def main():
    async with httpx2.AsyncClient(verify=False, trust_env=False) as client:
        headers = {{"authorization": "Bearer {KEY}", "content-type": "application/json"}}
        url = sys.argv[1] + "/chat/completions"
        async with client.stream("POST", url, content={BODY!r}, headers=headers) as answer:
            async for line in answer.aiter_lines():
                pass
asyncio.run(main())
"""
HERMES = "import sys; sys.argv[0] = 'hermes'; from hermes_agent.cli.main import main; sys.exit(main())"
TIMES = 15


def measure() -> list[Figure]:
    """The figures of this module."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_in_thread(openai_model(lambda _: Say("Hello."))) as server,
    ):
        home = Path(folder)
        (home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n")
        variables = {**os.environ, "HERMES_HOME": folder, "CUSTOM_API_KEY": KEY}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling every module anew is not what is measured
        floor = [sys.executable, "-c", TEN_LINES, server.url]
        ours = [sys.executable, "-P", "-c", HERMES, "-z", "hi"]
        for command in (floor, ours):
            to_request(command, server, variables)
        samples = [(to_request(floor, server, variables), to_request(ours, server, variables)) for _ in range(TIMES)]
        bare = median(lambda: seconds([sys.executable, "-c", "pass"], variables), TIMES)
        version = median(lambda: seconds([sys.executable, "-P", "-c", HERMES, "--version"], variables), TIMES)
    first = [sorted(column)[TIMES // 2] * 1000 for column in zip(*samples, strict=True)]
    return [
        Figure(name="hermes --version", value=version * 1000, floor=bare * 1000, unit="ms", limit=3),
        Figure(name="hermes -z to its first request", value=first[1], floor=first[0], unit="ms", limit=2),
    ]


def seconds(command: list[str], variables: dict[str, str]) -> float:
    """How long a command takes."""
    began = time.perf_counter()
    subprocess.run(command, check=True, env=variables, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return time.perf_counter() - began


def to_request(command: list[str], server: ModelServer, variables: dict[str, str]) -> float:
    """Seconds from the start of the process to the arrival of its request."""
    before = len(server.exchanges)
    began = time.monotonic()
    subprocess.run(command, check=True, env=variables, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return server.exchanges[before].arrived - began
