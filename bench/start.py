"""How soon the program is there: `--version`, and a one-shot question up to its first request on the wire; and what
loading takes that is done late."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from bench.figures import Figure, median
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import KEY, ModelServer, openai_model, serving_in_thread

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
TEN_LINES = f"""
import http.client, sys
place, _, path = sys.argv[1].removeprefix("http://").partition("/")
connection = http.client.HTTPConnection(place)
headers = {{"authorization": "Bearer {KEY}", "content-type": "application/json"}}
connection.request("POST", f"/{{path}}/chat/completions", {BODY!r}, headers)
connection.getresponse().read()
"""
WRAPPER = str(Path(__file__).resolve().parents[1] / "hermes")
"""The command of a checkout, which makes its environment where there is none."""
HERMES = "import sys; sys.argv[0] = 'hermes'; from hermes_agent.cli.main import main; sys.exit(main())"
TIMES = 15


LIBRARIES = (
    "httpx2",
    "pypdf",
    "docx",
    "openpyxl",
    "selectolax.lexbor",
    "wsproto",
    "aiohttp",
)
CLASSES = 200
RECORDS = f"""
from {{module}} import dataclass
for number in range({CLASSES}):
    class Record:
        name: str
        at: float
        about: str = ""
        parts: tuple[str, ...] = ()
    dataclass(frozen=True, slots=True, kw_only=True)(Record)
"""


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
        ours, wrapped = [sys.executable, "-P", "-c", HERMES], [WRAPPER]
        asking = [floor, [*ours, "-z", "hi"], [*wrapped, "-z", "hi"]]
        for command in asking:
            to_request(command, server, variables)
        samples = [[to_request(command, server, variables) for command in asking] for _ in range(TIMES)]
        least, direct, whole = [1000 * sorted(column)[TIMES // 2] for column in zip(*samples, strict=True)]
        starting = [[sys.executable, "-c", "pass"], [*ours, "--version"], [*wrapped, "--version"]]
        bare, version, called = (1000 * median(partial(seconds, each, variables), TIMES) for each in starting)
    return [
        Figure(name="hermes --version", value=version, floor=bare, unit="ms", limit=3),
        Figure(name="./hermes --version", value=called, floor=bare, unit="ms", limit=3),
        Figure(name="hermes -z to its first request, by http.client", value=direct, floor=least, unit="ms", limit=8),
        Figure(name="./hermes -z to its first request, by http.client", value=whole, floor=least, unit="ms", limit=8),
        *_loads(),
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


def _loads() -> list[Figure]:
    """What is loaded late, and what making the classes of records takes."""
    figures = [Figure(name=f"loading {each}", value=_milliseconds(f"import {each}"), unit="ms") for each in LIBRARIES]
    ours, floor = (
        _milliseconds(RECORDS.format(module=name)) for name in ("hermes_agent.core.dataclass", "dataclasses")
    )
    name = f"{CLASSES} classes of core/dataclass.py, by the standard library's"
    return [*figures, Figure(name=name, value=ours, floor=floor, unit="ms", limit=0.5)]


def _milliseconds(code: str) -> float:
    """Milliseconds of processor time that this takes in a program of its own, once the interpreter runs."""
    measured = f"import time; began = time.process_time()\n{code}\nprint(time.process_time() - began)"

    def once() -> float:
        command = [sys.executable, "-c", measured]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) * 1000

    return median(once, TIMES)
