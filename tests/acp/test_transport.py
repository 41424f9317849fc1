"""Lines between the editor and the agent: nothing but JSON goes out, whatever comes in, or prints, or waits."""

import asyncio
import json
import random
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.acp.transport import LONGEST_LINE, MOST_WAITING, StdioTransport, wrong_with
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import openai_model, serving
from tests.acp.editor import LIMIT, Json, Raw, lines, raw
from tests.app.place import settle_home, spoken

INITIALIZE = {"protocolVersion": 1}


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (b"{", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b'"\\ud800"', None, -32700),
        (b"[" * 100_000, None, -32700),
        (b"[]", None, -32600),
        (b"7", None, -32600),
        (b'{"id":[1],"method":"initialize"}', None, -32600),
        (b'{"id":true,"method":"initialize"}', None, -32600),
        (b'{"id":1e400,"method":"initialize"}', None, -32700),
        (b'{"id":5,"method":7}', 5, -32600),
        (b'{"id":5,"method":"initialize","params":3}', 5, -32600),
        (b'{"id":5}', None, -32600),
        (b"{}", None, -32600),
        (b'{"id":5,"method":"session/eat"}', 5, -32601),
        (b'{"id":"x","method":"session/new","params":[]}', "x", -32602),
        (b'{"id":"x","method":"session/new","params":{"cwd":1,"mcpServers":[]}}', "x", -32602),
        (b'{"id":6,"method":"session/prompt","params":{"sessionId":"no","prompt":[]}}', 6, -32602),
        (b'{"id":6,"method":"session/prompt","params":{"sessionId":"no","prompt":[{"type":"smell"}]}}', 6, -32602),
    ],
)
async def test_what_is_no_request_is_answered_and_the_connection_lives(
    tmp_path: Path, line: bytes, number: object, code: int
):
    async with lines(tmp_path / "home") as editor:
        await editor.send(line)
        refused = await editor.next()
        assert (refused["id"], refused["error"]["code"]) == (number, code)
        assert refused["error"]["message"].endswith((".", ")"))
        assert (await editor.ask("initialize", INITIALIZE))["result"]["protocolVersion"] == 1


@pytest.mark.parametrize("number", ["p", 7, None])
async def test_a_request_with_an_id_that_is_under_way_is_refused_and_the_first_goes_on(tmp_path: Path, number: object):
    (tmp_path / "work").mkdir()
    async with serving(openai_model(lambda _: Hang(), keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with raw(home.root, tmp_path / "work") as agent:
            await agent.ask("initialize", INITIALIZE)
            made = await agent.ask("session/new", {"cwd": str(tmp_path / "work"), "mcpServers": []})
            session = {"sessionId": made["result"]["sessionId"]}
            prompt = {**session, "prompt": [{"type": "text", "text": "Go"}]}
            await agent.send({"id": number, "method": "session/prompt", "params": prompt})
            await agent.send({"id": number, "method": "session/list", "params": {}})
            refused = await agent.answer(None)
            await agent.send({"method": "session/cancel", "params": session})
            ended = await agent.answer(number)
            await agent.send({"id": number, "method": "session/list", "params": {}})
            again = await agent.answer(number)
            await agent.send({"id": 1.5, "method": "session/list", "params": {}})
            fraction = await agent.answer(None)

    assert refused["error"]["code"] == fraction["error"]["code"] == -32600
    assert "is under way" in refused["error"]["message"]
    assert ended["result"]["stopReason"] == "cancelled"
    assert "sessions" in again["result"]


async def test_answers_and_notifications_that_mean_nothing_are_left_alone(tmp_path: Path):
    async with lines(tmp_path / "home") as editor:
        for line in (
            b'{"id":99,"result":{}}',
            b'{"id":"a","error":7}',
            b'{"id":0,"error":{"code":"x"}}',
            b'{"method":"session/cancel","params":{"sessionId":"no"}}',
            b'{"method":"session/cancel"}',
            b'{"method":"$/cancel_request","params":{"requestId":77}}',
            b'{"method":"nothing/known"}',
            b"",
            b"   ",
        ):
            await editor.send(line)
        assert (await editor.ask("initialize", INITIALIZE))["result"]["agentInfo"]["name"] == "hermes"


async def test_a_line_that_is_too_long_is_left_out_and_the_next_one_is_read(tmp_path: Path):
    async with lines(tmp_path / "home") as editor:
        piece = b"x" * (1 << 20)
        for _ in range((LONGEST_LINE >> 20) + 2):
            editor.process.stdin.write(piece)
            await editor.process.stdin.drain()
        await editor.send(b"")
        refused = await editor.next()
        assert refused["error"]["code"] == -32600
        assert "result" in await editor.ask("initialize", INITIALIZE)


async def test_pieces_of_one_message_join_while_the_editor_is_slow():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport = StdioTransport(theirs.fileno(), theirs.fileno())

        def chunk(session: str, name: str, text: str) -> Json:
            content = {"type": "text", "text": text}
            update = {"sessionUpdate": "agent_message_chunk", "messageId": name, "content": content}
            return {"method": "session/update", "params": {"sessionId": session, "update": update}}

        for number in range(100):
            for session in ("a", "b"):
                await transport.send(chunk(session, str(number // 50), "x" * 1000))
        other = {"method": "session/update", "params": {"sessionId": "a", "update": {"sessionUpdate": "plan"}}}
        await transport.send(other)
        await transport.send(chunk("a", "1", "end"))
        reader, writer = await asyncio.open_connection(sock=ours, limit=LIMIT)
        found = [json.loads(await reader.readline())["params"] for _ in range(6)]
        await transport.close()
        writer.close()
        await writer.wait_closed()

    texts = [(each["sessionId"], len(each["update"].get("content", {}).get("text", ""))) for each in found]
    assert texts == [("a", 50_000), ("b", 50_000), ("a", 50_000), ("b", 50_000), ("a", 0), ("a", 3)]


async def test_updates_wait_for_a_slow_editor_and_answers_do_not():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport = StdioTransport(theirs.fileno(), theirs.fileno())
        await transport.send({"id": 1, "result": "x" * 2 * MOST_WAITING})
        waiting = asyncio.create_task(transport.room())
        await asyncio.wait_for(transport.send({"id": 2, "result": {}}), 1)
        assert not waiting.done()
        reader, writer = await asyncio.open_connection(sock=ours, limit=LIMIT)
        assert len(await reader.readline()) > MOST_WAITING
        await asyncio.wait_for(waiting, 2)
        await transport.close()
        writer.close()
        await writer.wait_closed()


SHOUTING = """
import sys, threading, time, os
def shout():
    while 'hermes_agent.acp.serve' not in sys.modules: time.sleep(0.001)
    time.sleep(0.05)
    while True:
        print('noise', flush=True); os.write(1, b'more noise\\n'); os.system('echo child noise')
        time.sleep(0.01)
threading.Thread(target=shout, daemon=True).start()
"""


async def talk(agent: Raw, work: Path, times: int) -> None:
    await agent.ask("initialize", INITIALIZE)
    made = await agent.ask("session/new", {"cwd": str(work), "mcpServers": []})
    prompt = {"sessionId": made["result"]["sessionId"], "prompt": [{"type": "text", "text": "Go"}]}
    for _ in range(times):
        assert (await agent.ask("session/prompt", prompt))["result"]["stopReason"] == "end_turn"


@pytest.mark.timeout(1200)
async def test_nothing_but_json_goes_out_whatever_prints(tmp_path: Path, full: bool):
    noise, work = tmp_path / "noise", tmp_path / "work"
    noise.mkdir()
    work.mkdir()
    (noise / "sitecustomize.py").write_text(SHOUTING)
    noisy = {"PYTHONPATH": f"{noise}:{Path(__file__).parents[2] / 'src'}"}

    def script(heard: Heard) -> Json:
        return Say("Over.") if spoken(heard) else Call("terminal", {"command": "echo to stdout; echo to stderr >&2"})

    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        for _ in range(20 if full else 1):
            async with raw(home.root, work, **noisy) as agent:
                await talk(agent, work, 10 if full else 2)
            assert all(json.loads(line)["jsonrpc"] == "2.0" for line in agent.lines)


async def test_a_slow_reader_delays_no_run_and_loses_no_word(tmp_path: Path):
    words, pieces = " ".join(str(number) for number in range(40_000)), list[str]()
    (tmp_path / "work").mkdir()
    async with serving(openai_model(lambda _: Say(words), keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with lines(home.root) as editor:
            await editor.ask("initialize", INITIALIZE)
            made = (await editor.ask("session/new", {"cwd": str(tmp_path / "work"), "mcpServers": []}))["result"]
            prompt = {"sessionId": made["sessionId"], "prompt": [{"type": "text", "text": "Count"}]}
            await editor.send({"jsonrpc": "2.0", "id": "slow", "method": "session/prompt", "params": prompt})
            editor.process.stdout._transport.pause_reading()
            await until(lambda: server.exchanges and server.exchanges[0].over.is_set())
            editor.process.stdout._transport.resume_reading()
            while (message := await editor.next()).get("id") != "slow":
                pieces.append(said(message))

    assert "".join(pieces) == words
    assert message["result"]["stopReason"] == "end_turn"


@pytest.mark.timeout(120)
async def test_a_prompt_can_be_cancelled_after_a_load_that_was_withdrawn(tmp_path: Path):
    (tmp_path / "work").mkdir()

    long = Answer(pieces=(Say("word " * 250_000),), pace=Pace(characters=10_000))

    def script(heard: Heard) -> Json:
        if heard.messages[-1].text == "Once more":
            return Say("Yes.")
        return Hang() if spoken(heard) else long

    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with lines(home.root) as editor:
            await editor.ask("initialize", INITIALIZE)
            folder = {"cwd": str(tmp_path / "work"), "mcpServers": []}
            session = (await editor.ask("session/new", folder))["result"]["sessionId"]
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "Go"}]}
            await editor.ask("session/prompt", prompt)
            await editor.send({"jsonrpc": "2.0", "id": "hangs", "method": "session/prompt", "params": prompt})
            await until(lambda: len(server.exchanges) == 2)
            editor.process.stdout._transport.pause_reading()
            load = {"sessionId": session, **folder}
            await editor.send({"jsonrpc": "2.0", "id": "load", "method": "session/load", "params": load})
            await asyncio.sleep(0.3)  # It shows what it can until the editor's buffers are full.
            await editor.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "load"}})
            await editor.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
            editor.process.stdout._transport.resume_reading()
            withdrawn, ended = await editor.answer("load"), await editor.answer("hangs")
            again = await editor.ask("session/prompt", {**prompt, "prompt": [{"type": "text", "text": "Once more"}]})

    assert again["result"]["stopReason"] == "end_turn"
    assert withdrawn["error"]["code"] == -32800
    assert ended["result"]["stopReason"] == "cancelled"


def said(message: Json) -> str:
    update = message.get("params", {}).get("update", {})
    return update["content"]["text"] if update.get("sessionUpdate") == "agent_message_chunk" else ""


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.02)


def mutated(message: bytes, draw: random.Random) -> bytes:
    kept = bytearray(message)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(kept))
        match draw.randrange(4):
            case 0:
                kept[at] = draw.randrange(256)
            case 1:
                del kept[at : at + draw.randint(1, 8)]
            case 2:
                kept[at:at] = bytes(draw.choices(b'{}[]":,0truenl\\u', k=draw.randint(1, 6)))
            case _:
                kept[at:at] = kept[at : at + draw.randint(1, 30)]
        kept = kept or bytearray(b"{")
    return bytes(kept).replace(b"\n", b" ")


class Answers:
    """How often each request was sent and answered, and how many were refused for an id that is under way."""

    def __init__(self) -> None:
        self.sent: Counter[object] = Counter()
        self.answered: Counter[object] = Counter()
        self.refused = 0

    def send(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not wrong_with(found) and isinstance(found.get("id"), str | int) and "method" in found:
            self.sent[found["id"]] += 1

    async def hear(self, editor: Raw) -> None:
        while not self.answered["last"] or self.sent.total() > self.found().total() + self.refused:
            message = await editor.next()
            if "method" not in message and message.get("id") is not None:
                self.answered[message["id"]] += 1
            self.refused += "is under way" in message.get("error", {}).get("message", "")

    def found(self) -> Counter[object]:
        return Counter({name: self.answered[name] for name in self.sent})


@pytest.mark.timeout(3600)
async def test_mutated_messages_break_nothing_and_each_id_is_answered_once(tmp_path: Path, full: bool):
    draw, work = random.Random(7), str(tmp_path / "work")
    (tmp_path / "work").mkdir()
    async with (
        serving(openai_model(lambda _: Say("Over."), keys=())) as server,
        lines(settle_home(tmp_path / "home", server.url).root) as editor,
    ):
        await editor.ask("initialize", INITIALIZE)
        session = (await editor.ask("session/new", {"cwd": work, "mcpServers": []}))["result"]["sessionId"]
        seeds = [
            ("initialize", INITIALIZE),
            ("session/new", {"cwd": work, "mcpServers": [], "additionalDirectories": [work]}),
            ("session/load", {"sessionId": session, "cwd": work, "mcpServers": []}),
            ("session/list", {"cwd": work, "cursor": session}),
            ("session/set_mode", {"sessionId": session, "modeId": "plan"}),
            ("session/set_config_option", {"sessionId": session, "configId": "effort", "value": "low"}),
            ("session/close", {"sessionId": session}),
            ("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "Hi"}]}),
            ("session/resume", {"sessionId": session, "cwd": work, "mcpServers": []}),
            ("session/cancel", {"sessionId": session}),
            ("$/cancel_request", {"requestId": 3}),
        ]
        answers = Answers()
        hearing = asyncio.create_task(answers.hear(editor))
        for number in range(100_000 if full else 1_000):
            method, params = draw.choice(seeds)
            message = {"jsonrpc": "2.0", "id": f"n{number}", "method": method, "params": params}
            line = mutated(json.dumps(message).encode(), draw)
            answers.send(line)
            await editor.send(line)
            if number % 20 == 0:
                await editor.process.stdin.drain()
        await editor.send({"jsonrpc": "2.0", "id": "last", "method": "initialize", "params": INITIALIZE})
        await hearing

    assert all(answers.found().values())
    assert answers.found() <= answers.sent
    assert answers.sent.total() == answers.found().total() + answers.refused
