"""A journey under a real user manager of systemd, in a namespace of its own; prints what it saw."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hermes_agent.providers.demo.script import Answer, Pace, Say
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread

KEY = "0123456789abcdef0123"
UNIT = "hermes-gateway.service"
SHORT = """[Service]
WatchdogSec=3
RestartSec=0
LimitCORE=0
ExecStopPost=/bin/sh -c 'echo $SERVICE_RESULT >> %h/results'
"""
"""A minute is long for a test; what is killed for its silence leaves no core behind; and each end is written down."""


def main(folder: Path) -> None:
    """Everything that a person does with the service, in one home."""
    home = folder / ".hermes"
    home.mkdir(parents=True)
    dropin = folder / f".config/systemd/user/{UNIT}.d/short.conf"
    dropin.parent.mkdir(parents=True)
    dropin.write_text(SHORT)
    (home / ".env").write_text(f"API_SERVER_KEY={KEY}\n")
    (home / ".env").chmod(0o600)
    port = free_port()
    slow = Answer(pieces=(Say("To the end."),), pace=Pace(first=2.0))
    with serving_in_thread(openai_model(lambda _: slow, keys=())) as model:
        (home / "config.yaml").write_text(
            f"model:\n  default: custom/m\n  base_url: {model.url}\napi:\n  enabled: true\n  port: {port}\n"
        )
        with manager():
            print(json.dumps(journey(folder, model, f"http://127.0.0.1:{port}/v1/chat/completions")))


class manager:  # noqa: N801  a block
    """A user manager whose runtime folder nobody else sees."""

    def __enter__(self) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        Path("/run/systemd/system").mkdir(parents=True)
        Path("/run/user/0").mkdir(parents=True, mode=0o700)
        self._process = subprocess.Popen(["/lib/systemd/systemd", "--user"], stdout=subprocess.DEVNULL)
        until(lambda: Path("/run/user/0/systemd/private").exists())
        systemctl("set-environment", f"PYTHONPATH={os.environ['PYTHONPATH']}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


def journey(folder: Path, model: ModelServer, url: str) -> dict[str, object]:
    """What was seen, by what was done."""
    seen: dict[str, object] = {"install": hermes("install")}
    seen["installed"] = state()
    first = int(shown("MainPID"))
    seen["status"] = hermes("status")

    os.kill(first, signal.SIGKILL)
    until(lambda: int(shown("MainPID")) not in (0, first) and shown("SubState") == "running")
    seen["killed"] = state()

    second = int(shown("MainPID"))
    os.kill(second, signal.SIGSTOP)
    until(lambda: int(shown("MainPID")) not in (0, second) and shown("SubState") == "running", 40)
    seen["hung"] = state()

    systemctl("reload", UNIT)
    seen["reloaded"] = state()

    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(ask, url)
        until(lambda: bool(model.asked))
        systemctl("stop", UNIT)
        seen["answer"] = said.result()
    seen["stopped"] = state()

    systemctl("start", UNIT)
    seen["uninstall"] = hermes("uninstall")
    seen["ends"] = (folder / "results").read_text().split()
    seen["left"] = [state(), str(sorted(path.name for path in (folder / ".config/systemd/user").rglob("*.service")))]
    return seen


def hermes(*words: str) -> str:
    """What `hermes gateway` says."""
    done = subprocess.run(
        [sys.executable, "-m", "hermes_agent", "gateway", *words], capture_output=True, text=True, check=False
    )
    return f"{done.returncode} {done.stdout}{done.stderr}"


def systemctl(*words: str) -> str:
    """What systemctl says."""
    return subprocess.run(["systemctl", "--user", *words], capture_output=True, text=True, check=True).stdout


def shown(name: str) -> str:
    """One property of the unit."""
    return systemctl("show", UNIT, "--value", "-p", name).strip()


def state() -> str:
    """Whether it is loaded, how it is, what it said of itself, how often it was started anew."""
    return " ".join(shown(name) for name in ("LoadState", "SubState", "NRestarts", "StatusText")).strip()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def ask(url: str) -> str:
    """The agent's answer."""
    request = urllib.request.Request(
        url,
        data=json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode(),
        headers={"authorization": f"Bearer {KEY}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.loads(answer.read())["choices"][0]["message"]["content"])


def until(ready: Callable[[], bool], seconds: float = 20) -> None:
    """Return when it is so."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "It did not come to that."
        threading.Event().wait(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
