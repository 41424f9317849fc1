"""SIGTERM, SIGHUP and Ctrl-C are stops, whatever is under way: two seconds, and no process is left.

`--full`: a command with a limit of 4 s is left at 200 random moments by each of SIGTERM, SIGHUP and SIGKILL.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from hermes_agent.app.settings import DRAIN_SECONDS
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.database import open_store
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread
from hermes_agent.testing.scripted import Step
from tests.children import started
from tests.cli.chat.terminal import Terminal
from tests.faults.household import open_session, say
from tests.host.test_lock_file import other_holder
from tests.ports import free_port
from tests.sandbox.beats import beating, held

SETTINGS = """\
model:
  default: custom/m
  base_url: {model}
approvals:
  mode: 'off'
checkpoints:
  enabled: false
gateway:
  drain_seconds: {drain}
api:
  port: 0
"""
STUBBORN = "trap '' TERM HUP INT; (trap '' TERM HUP; setsid sleep 61 &); sleep 62; sleep 63"
ASKED = "m0"
LOCK = "locks/memories.lock"
SECONDS, SLACK = 2.0, 0.7  # the machine of the tests is busy


def hung(heard: Heard, beat: str, what: str) -> Step:
    """A model that hangs, or calls a command that does, or what needs the lock of the notes."""
    if what == "model":
        return Hang(headers=False)
    if what == "lock":
        return Call("memory", {"target": "memory", "action": "add", "content": "Tea."})
    if len(heard.messages) > 1 and heard.last.role == "tool":
        return Say("Done.")
    return Call("terminal", {"command": f"{beat}{STUBBORN if what == 'stubborn' else 'sleep 60; sleep 61'}"})


@contextmanager
def harness(folder: Path, what: str, drain: float = 0.0) -> Iterator[tuple[Path, Path, ModelServer]]:
    """A home, a workspace, and a model with which everything hangs."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    beat = beating(work)
    with ExitStack() as closing:
        model = closing.enter_context(serving_in_thread(openai_model(lambda heard: hung(heard, beat, what), keys=())))
        if what == "lock":
            holder = closing.enter_context(other_holder(home / LOCK))
            os.killpg(holder.pid, signal.SIGSTOP)
        (home / "config.yaml").write_text(SETTINGS.format(model=model.url, drain=drain))
        yield home, work, model


def oneshot(home: Path, work: Path, closing: ExitStack) -> subprocess.Popen[bytes]:
    return started("-z", ASKED, home=home, folder=work, CUSTOM_API_KEY="k")


def chat(home: Path, work: Path, closing: ExitStack) -> subprocess.Popen[bytes]:
    return chatting(home, work, closing).process


def chatting(home: Path, work: Path, closing: ExitStack) -> Terminal:
    (home / ".env").write_text("CUSTOM_API_KEY=k\n")
    (home / ".env").chmod(0o600)
    terminal = closing.enter_context(Terminal(home=home, folder=work))
    terminal.wait_for("new session")
    terminal.send(f"{ASKED}\r")
    return terminal


def server(*words: str) -> Callable[[Path, Path, ExitStack], subprocess.Popen[bytes]]:
    def start(home: Path, work: Path, closing: ExitStack) -> subprocess.Popen[bytes]:
        asyncio.run(mail(home, work))
        return started(*words, home=home, folder=work, CUSTOM_API_KEY="k", API_SERVER_KEY="k" * 40)

    return start


def api(home: Path, work: Path, closing: ExitStack) -> subprocess.Popen[bytes]:
    port, key = free_port(), "k" * 40
    with (home / "config.yaml").open("a") as file:
        file.write(f"  workspace: {work}\n")
    config = (home / "config.yaml").read_text().replace("  port: 0", f"  port: {port}")
    (home / "config.yaml").write_text(config)
    child = started("api", "run", home=home, folder=work, CUSTOM_API_KEY="k", API_SERVER_KEY=key)
    until(lambda: answers(port), 30, "the API does not listen")
    body = json.dumps({"messages": [{"role": "user", "content": ASKED}]}).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, headers)
    asking = threading.Thread(target=lambda: ask(request))
    asking.start()
    closing.callback(asking.join)
    return child


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def ask(request: urllib.request.Request) -> None:
    with suppress(OSError, http.client.HTTPException), urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


async def mail(home: Path, work: Path) -> None:
    store = await open_store(str(home / "hermes.db"))
    await say(store, await open_session(store, 0, work), ASKED, 0)
    await store.close()


WAYS = {
    "one-shot": oneshot,
    "chat": chat,
    "gateway": server("gateway", "run"),
    "worker": server("worker"),
}


CASES = [
    (way, what, number)
    for way in WAYS
    for what in ("model", "command", "stubborn", "lock")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    if number is not signal.SIGINT or (what == "lock" and way != "chat")  # There Ctrl-C is a key.
]


def begun(what: str, child: subprocess.Popen[bytes], home: Path, work: Path, model: ModelServer) -> bool:
    match what:
        case "model":
            return bool(model.exchanges)
        case "lock":
            return waits(child, home)
        case _:
            return held(work)


def waits(child: subprocess.Popen[bytes], home: Path) -> bool:
    """Whether a process has opened the lock that another one holds."""
    with suppress(OSError):  # One was closed just now.
        return home / LOCK in [file.readlink() for file in Path(f"/proc/{child.pid}/fd").iterdir()]
    return False


def until(claim: Callable[[], bool], seconds: float, wanted: str) -> None:
    pause = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < pause, wanted
        select_pause()


def select_pause() -> None:
    signal.sigtimedwait([], 0.01)


def ended_within(child: subprocess.Popen[bytes], seconds: float) -> float:
    """How long it took to end; a pty is read meanwhile by nobody, as where the terminal is gone."""
    began = time.monotonic()
    child.wait(timeout=seconds)
    return time.monotonic() - began


@pytest.mark.timeout(90)
@pytest.mark.parametrize(("way", "what", "number"), CASES, ids=lambda each: getattr(each, "name", each))
def test_whoever_is_asked_to_end_ends_in_two_seconds_and_leaves_no_process(
    tmp_path: Path, way: str, what: str, number: signal.Signals
):
    with ExitStack() as closing:
        home, work, model = closing.enter_context(harness(tmp_path, what))
        child = WAYS[way](home, work, closing)
        try:
            until(lambda: begun(what, child, home, work, model), 30, "it never began")

            child.send_signal(number)
            took = ended_within(child, 15)

            assert took < SECONDS + SLACK
            until(lambda: not held(work), 0.5, "a process was left")
        finally:
            child.kill()
            child.communicate()


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize("what", ["stubborn", "lock"])
def test_the_api_gives_its_answers_their_time_and_leaves_no_process(tmp_path: Path, what: str):
    with ExitStack() as closing:
        home, work, model = closing.enter_context(harness(tmp_path, what))
        child = api(home, work, closing)
        until(lambda: begun(what, child, home, work, model), 30, "it never began")

        child.send_signal(signal.SIGTERM)

        assert DRAIN_SECONDS < ended_within(child, 30) < DRAIN_SECONDS + SECONDS + SLACK
        until(lambda: not held(work), 0.5, "a process was left")
        child.communicate()


def test_ctrl_c_in_a_chat_ends_a_wait_for_a_lock(tmp_path: Path):
    with harness(tmp_path, "lock") as (home, work, _), ExitStack() as closing:
        terminal = chatting(home, work, closing)
        until(lambda: waits(terminal.process, home), 30, "it never began")
        began = time.monotonic()

        terminal.send("\x03")
        until(lambda: not waits(terminal.process, home), 15, "the wait goes on")
        terminal.send("\x04")

        assert terminal.wait_for_end() == 0
        assert time.monotonic() - began < SECONDS + SLACK


def test_a_program_that_is_to_outlive_its_terminal_does(tmp_path: Path):
    with harness(tmp_path, "command") as (home, work, _):
        child = started("-z", ASKED, home=home, folder=work, before=["nohup"], CUSTOM_API_KEY="k")
        until(lambda: held(work), 30, "it never began")

        child.send_signal(signal.SIGHUP)

        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1.0)
        child.send_signal(signal.SIGTERM)
        assert ended_within(child, 15) < SECONDS + SLACK
        child.communicate()


def test_a_gateway_whose_runs_may_finish_ends_at_once_when_it_is_asked_again(tmp_path: Path):
    with harness(tmp_path, "command", drain=60.0) as (home, work, _), ExitStack() as closing:
        child = WAYS["gateway"](home, work, closing)
        until(lambda: held(work), 30, "it never began")
        child.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1.0)

        child.send_signal(signal.SIGTERM)

        assert ended_within(child, 15) < SECONDS + SLACK
        until(lambda: not held(work), 0.5, "a process was left")
        child.communicate()


LIMIT = 4


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
def test_no_process_is_left_of_a_command_whose_limit_has_passed(
    tmp_path: Path, number: signal.Signals, request: pytest.FixtureRequest
):
    times = 200 if request.config.getoption("--full", default=False) else 4
    chance, left = random.Random(int(number)), []

    def commands(heard: Heard) -> Step:
        if heard.last.role == "tool":
            return Say("Done.")
        beat = f"exec 7<>{heard.last.text}/held; "
        return Call("terminal", {"command": f"{beat}sleep 60 & sleep 61", "timeout": LIMIT})

    home = tmp_path / "home"
    home.mkdir()
    with serving_in_thread(openai_model(commands, keys=())) as model:
        (home / "config.yaml").write_text(SETTINGS.format(model=model.url, drain=0))
        gone: list[tuple[float, Path]] = []
        for round_ in range(times):
            work = tmp_path / f"work{round_}"
            work.mkdir()
            beating(work)
            child = started("-z", str(work), home=home, folder=work, CUSTOM_API_KEY="k")
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(chance.uniform(0.05, LIMIT + 0.4))
            child.send_signal(number)
            child.communicate(timeout=15)
            gone.append((time.monotonic(), work))
            left += [work for at, work in gone if time.monotonic() > at + 6 and held(work)]
        until(lambda: time.monotonic() > gone[-1][0] + 6, 10, "time passes")
        left += [work for _, work in gone if held(work)]
    print(f"{times} times {number.name}: {len(left)} left")

    assert left == []


def test_a_process_that_holds_the_pipe_is_seen(tmp_path: Path):
    beating(tmp_path)
    assert not held(tmp_path)
    handle = os.open(tmp_path / "held", os.O_RDWR)
    assert held(tmp_path)
    os.close(handle)
