"""Editors and agents that die, and prompts that are cancelled at any moment."""

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from acp import RequestError

from hermes_agent.core.shown import words_of
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import openai_model, serving
from tests.acp.editor import Client, Json, Place, Raw, editor, opened, raw, variables
from tests.app.place import another, counting, settle_home

SLEEPS = 'python3 -c "import time; time.sleep(97)"'


def sleepers() -> list[int]:
    """The processes of that command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"time.sleep(97)" in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


async def until(holds: Callable[[], object], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


def any_kind(heard: Heard) -> Json:
    """What a run is in the middle of, by the person's words."""
    words = heard.messages[-1].text
    if "hang" in words:
        return Hang()
    if "sleep" in words:
        return Call("terminal", {"command": SLEEPS})
    if "ask" in words:
        return Call("terminal", {"command": "git push --force origin main"})
    return Say("word " * 2_000)


@pytest.mark.timeout(3600)
async def test_a_prompt_that_is_cancelled_at_any_moment_ends_within_two_seconds(tmp_path: Path, full: bool):
    draw, client, slowest = random.Random(3), Client(hold=asyncio.Event()), 0.0
    before, lags, reasons = set(sleepers()), [0.0], Counter[str]()
    beating = asyncio.create_task(heartbeat(lags))
    async with editor(tmp_path, any_kind, client) as place:
        session = await place.begin()
        for number in range(500 if full else 12):
            if number % 5 == 4:
                await place.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])
            prompt = asyncio.create_task(place.say(session, draw.choice(("hang", "sleep", "ask", "talk"))))
            await asyncio.sleep(draw.choice((0, 0.001, 0.01, 0.05, 0.2)) * draw.random())
            began = asyncio.get_running_loop().time()
            await place.agent.cancel(session_id=session)
            ended = await asyncio.wait_for(prompt, 10)
            slowest = max(slowest, asyncio.get_running_loop().time() - began)
            assert ended.stop_reason in ("cancelled", "end_turn")
            reasons[ended.stop_reason] += 1
        await until(lambda: set(sleepers()) <= before)
        await stopped(place, session)
    beating.cancel()

    assert slowest - max(lags) < 2, (slowest, max(lags))
    assert reasons["cancelled"] > reasons["end_turn"]


async def test_a_prompt_whose_request_is_withdrawn_is_refused_and_its_run_stopped(tmp_path: Path):
    async with editor(tmp_path, lambda _: Hang()) as place:
        session, connection = await place.begin(), place.agent._conn
        asking = asyncio.create_task(place.say(session, "Hi"))
        await until(lambda: place.server.exchanges)
        await connection.send_notification("$/cancel_request", {"requestId": connection._next_request_id - 1})
        with pytest.raises(RequestError) as caught:
            await asyncio.wait_for(asking, 2)
        await stopped(place, session)

    assert caught.value.code == -32800


async def stopped(place: Place, session: str) -> None:
    """Return when no run of the session goes on."""
    async with another(Home(root=place.home, base=place.home), place.server) as terminal, asyncio.timeout(4):
        while (await terminal.runtime.hermes.view(session)).running:
            await asyncio.sleep(0.05)


async def heartbeat(lags: list[float]) -> None:
    """What the machine holds this process up by."""
    loop = asyncio.get_running_loop()
    while True:
        before = loop.time()
        await asyncio.sleep(0.05)
        lags.append(loop.time() - before - 0.05)


@pytest.mark.parametrize("way", ["close", "kill"])
async def test_a_command_ends_when_the_editor_leaves(tmp_path: Path, way: str):
    before = set(sleepers())
    (tmp_path / "work").mkdir()
    script = [Call("terminal", {"command": SLEEPS}), Say("Over.")]
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with raw(home.root, tmp_path / "work") as agent:
            await begin(agent, tmp_path / "work")
            await until(lambda: set(sleepers()) - before)
            if way == "close":
                agent.process.stdin.close()
            else:
                agent.process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(agent.process.wait(), 4)
            await until(lambda: set(sleepers()) <= before, 4)


STUCK = """
import asyncio, sys, threading
from pathlib import Path
from hermes_agent.acp.serve import serve
from hermes_agent.acp.transport import claim_stdio
from hermes_agent.host.paths import Home

async def main():
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    await serve(Home(root=Path(sys.argv[1]), base=Path(sys.argv[1])), claim_stdio())

asyncio.run(main())
"""


async def test_an_agent_with_a_thread_that_does_not_end_ends_with_its_editor(tmp_path: Path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STUCK, str(tmp_path)), env=variables(tmp_path), stdin=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(10):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()


async def begin(agent: Raw, work: Path) -> str:
    await agent.ask("initialize", {"protocolVersion": 1})
    made = await agent.ask("session/new", {"cwd": str(work), "mcpServers": []})
    prompt = [{"type": "text", "text": "Go"}]
    session = made["result"]["sessionId"]
    await agent.send(
        {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": {"sessionId": session, "prompt": prompt}}
    )
    return session


async def test_an_agent_whose_editor_was_killed_ends(tmp_path: Path):
    """The editor's end of the pipes is held by another process, as a wrapper may."""
    (tmp_path / "work").mkdir()
    home = settle_home(tmp_path / "home", "http://127.0.0.1:9")
    holder, agent = tmp_path / "holder.py", tmp_path / "pid"
    holder.write_text(
        "import os, subprocess, sys, time\n"
        "pipe = subprocess.PIPE\n"
        "child = subprocess.Popen([sys.executable, '-m', 'hermes_agent', 'acp'], stdin=pipe, stdout=pipe)\n"
        'child.stdin.write(b\'{"id":1,"method":"initialize","params":{"protocolVersion":1}}\\n\')\n'
        "child.stdin.flush()\n"
        "child.stdout.readline()\n"
        f"name = {str(agent)!r}\n"
        "open(name + '.new', 'w').write(str(child.pid))\n"
        "os.rename(name + '.new', name)\n"
        "os.fork()\n"
        "time.sleep(30)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(holder), env=variables(home.root), start_new_session=True
    )
    try:
        await until(agent.exists)
        pid = int(agent.read_text())
        process.kill()
        await process.wait()
        await until(lambda: not is_alive(pid), 8)
    finally:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.timeout(3600)
async def test_after_kills_at_random_the_history_is_that_of_the_log(tmp_path: Path, full: bool):
    draw = random.Random(5)
    (tmp_path / "work").mkdir()
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        session = ""
        for _ in range(200 if full else 1):
            async with opened(home.root, tmp_path / "work", server=server) as place:
                session = session or await place.begin()
                await place.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])
                prompt = asyncio.create_task(place.say(session, "Hi"))
                await asyncio.sleep(0.2 * draw.random())
                place.process.kill()
                await asyncio.wait((prompt,), timeout=2)
                prompt.cancel()
            shown = Client()
            async with opened(home.root, tmp_path / "work", shown, server) as place:
                await place.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])
            assert told(shown, session) == await logged(home, server, session)


def told(client: Client, session: str) -> list[str]:
    return [
        "".join(each.content.text for each in client.of(session, kind))
        for kind in ("user_message_chunk", "agent_message_chunk")
    ]


async def logged(home: Home, server: Json, session: str) -> list[str]:
    async with another(home, server) as terminal:
        view = await terminal.runtime.hermes.view(session)
    said = {"user": "", "assistant": ""}
    for message in view.messages:
        if not message.is_runtime and message.role in said:
            said[message.role] += words_of(message)
    return list(said.values())


async def test_two_editors_on_one_session_both_see_the_run(tmp_path: Path):
    second = Client()
    async with editor(tmp_path, counting, process=True) as place:
        session = await place.begin()
        await place.say(session, "One")
        async with opened(place.home, place.work, second) as other:
            await other.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])
            await place.say(session, "Two")
            await second.until(lambda: "Reply 2." in second.text(session))

    assert second.text(session, "user_message_chunk") == "OneTwo"


async def test_runs_go_on_without_the_editor_where_the_settings_say_so(tmp_path: Path):
    (tmp_path / "work").mkdir()
    script = [Call("terminal", {"command": "sleep 1"}), Say("Over.")]
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, "acp:\n  on_leave: finish\n")
        async with raw(home.root, tmp_path / "work") as agent:
            session = await begin(agent, tmp_path / "work")
            await until(lambda: server.exchanges)
            agent.process.stdin.close()
            await asyncio.wait_for(agent.process.wait(), 10)
        assert (await logged(home, server, session))[1] == "Over."


async def test_an_editor_that_leaves_in_the_middle_of_a_permission_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "work").mkdir()
    script = [Call("terminal", {"command": "git push --force origin main"}), Say("Over.")]
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with raw(home.root, tmp_path / "work") as agent:
            session = await begin(agent, tmp_path / "work")
            while (await agent.next()).get("method") != "session/request_permission":
                pass
            agent.process.stdin.close()
            await asyncio.wait_for(agent.process.wait(), 4)
        async with another(home, server) as terminal:
            assert not (await terminal.runtime.hermes.view(session)).running
