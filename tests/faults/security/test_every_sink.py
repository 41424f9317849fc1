"""Every way out of a run, each kind of secret: what people, programs, chats and files get of what was seen and said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import pytest

from hermes_agent.api.metrics import Metrics
from hermes_agent.api.serve import webhook_server
from hermes_agent.api.webhooks.signatures import signed
from hermes_agent.app.opening import Options
from hermes_agent.app.settings import SERVED
from hermes_agent.core.chat import Content, Letter, SlotState
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.events import Replied
from hermes_agent.host.secrets import open_secrets
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say, Think
from hermes_agent.replay.recorder import Recorder
from hermes_agent.testing.faults import ErrorEvent, Status
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.testing.scripted import ScriptedModel
from tests.api.served import served
from tests.app.place import PLACE, another, settle_home
from tests.cli.shell import program, typed
from tests.faults.security.test_secrets import FILE, KNOWN, SIGN_IN, TOKENS, files_of, held
from tests.gateway.harness import OWNER, harness

HOOK = "a-secret-of-the-hooks"
HOOKS = """webhooks:
  port: 0
  routes:
    push: {secret: HOOK_SECRET, deliver: "fake:1"}
    note: {secret: HOOK_SECRET, deliver: "fake:1", deliver_only: true, prompt: "It says {text}"}
"""
SHOW = Call("terminal", {"command": "cat tokens.txt"})
ASK = Call("clarify", {"question": f"Which of {FILE}?", "choices": [TOKENS["Stripe secret"], "two"]})
RISKY = Call("terminal", {"command": f"rm -rf ../x; echo {TOKENS['GitHub personal']}"})
SAID = Answer(pieces=(Think(f"I see {FILE}"), Say(f"It holds\n{FILE}\nand no more.")))


def showing(heard: Heard) -> Answer | Say | Call:
    """A model that shows the file, and then says it word for word, in its thoughts and in its reply."""
    if "You name conversations" in heard.system:
        return Say(f"Key {FILE[:300]}")
    return SHOW if heard.turn == 0 else SAID


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a known value, beside a workspace with the file."""
    root = tmp_path / "home"
    root.mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "tokens.txt").write_text(FILE)
    (tmp_path / "tokens.txt").write_text(FILE)
    (root / "workspace").mkdir()
    (root / "workspace" / "tokens.txt").write_text(FILE)
    secrets = open_secrets(settle_home(root, "http://127.0.0.1:1"), {})
    secrets.set("SHOP_LOGIN", KNOWN)
    (root / "auth.json").touch(0o600)
    (root / "auth.json").write_text(json.dumps({"version": 1, "sign_ins": {"x": {"access": SIGN_IN}}}))
    return root


def in_files(home: Path) -> dict[str, list[str]]:
    """What each file of the home holds."""
    return {
        str(path.relative_to(home)): kinds
        for path, text in files_of(home)
        if path.name != "tokens.txt" and (kinds := held(text))
    }


async def in_the_chat(home: Path) -> str:
    """A chat platform, with drafts."""
    script = ScriptedModel(lambda heard: [SHOW, SAID][min(heard.turn, 1)])
    async with harness(home.parent, script, f"{OWNER}stream: true\n") as here:
        await here.platform.say("Show the file", user="7", chat="1")
        await here.shown(1)
        await here.rest()
        chats = here.platform.chats
        return repr((chats.messages, chats.drafts))


async def over_http(home: Path) -> str:
    """The API: whole, as a stream, as events of a run, as a history."""
    script = ScriptedModel(showing)
    options = Options(queue=SERVED, own_only=False, titles=True, tape=Recorder(home / "tape.jsonl", SystemClock()))
    said = []
    async with served(home.parent, script, options=options) as server:
        server.runtime.secrets.set("SHOP_LOGIN", KNOWN)
        said += [(await server.chat("Show it", stream=stream)).text for stream in (False, True)]
        for stream in (False, True):
            said.append((await server.ask("POST", "/v1/responses", {"input": "Show it", "stream": stream})).text)
        run = (await server.ask("POST", "/v1/runs", {"input": "Show it"})).json()
        said.append((await server.ask("GET", f"/v1/runs/{run['id']}/events")).text)
        for path in ("/v1/sessions", "/metrics"):
            said.append((await server.ask("GET", path)).text)
        for each in (await server.ask("GET", "/v1/sessions")).json()["data"]:
            said.append((await server.ask("GET", f"/v1/sessions/{each['id']}/messages")).text)
    return "".join(said)


async def in_a_terminal(home: Path) -> str:
    """The program itself, and what its commands show afterwards."""
    async with serving(openai_model(ScriptedModel(showing), keys=())) as model:
        settle_home(home, model.url)
        return await asyncio.to_thread(_typed, home)


def _typed(home: Path) -> str:
    done = [program("-z", "Show the file", *more, home=home) for more in ((), ("--json",))]
    said = [each.out + each.err for each in done]
    ids = [row["id"] for row in json.loads(typed(home, "sessions", "list", "--json").out)]
    assert ids
    for words in (("sessions", "show"), ("sessions", "export", "-f", "md")):
        said += [typed(home, *words[:2], each, *words[2:]).out for each in ids]
    said.append(typed(home, "sessions", "list").out)
    return "".join(said)


async def in_errors(home: Path) -> str:
    """A vendor that quotes keys in its errors, before and in the stream."""
    answers = [Status(400, message=FILE), Status(401, message=FILE), ErrorEvent(message=FILE, status=400)]
    seen = []
    for answer in answers:
        async with (
            serving(openai_model(ScriptedModel(lambda _, answer=answer: answer), keys=())) as server,
            another(settle_home(home, server.url), server) as here,
        ):
            seen.append((await here.say("Show it")).text)
            seen.append(repr(await here.log()))
    return "".join(seen)


async def by_a_hook(home: Path) -> str:
    """A report that quotes keys: what the model is sent, and the chat that it is told in."""
    seen = []
    async with harness(home.parent, ScriptedModel(lambda _: SAID), f"{OWNER}home: '1'\n", more=HOOKS) as here:
        runtime = here.gateway.runtime
        runtime.secrets.set("HOOK_SECRET", HOOK)
        runtime.secrets.set("SHOP_LOGIN", KNOWN)
        async with (
            webhook_server(runtime, Metrics()) as at,
            httpx2.AsyncClient(base_url=at.url, trust_env=False, timeout=15) as client,
        ):
            body = json.dumps({"text": FILE}).encode()
            headers = {"content-type": "application/json", **signed("generic", HOOK, body, runtime.clock.now(), "")}
            for route in ("push", "note"):
                assert (await client.post(f"/webhooks/{route}", content=body, headers=headers)).status_code < 300
            await here.shown(2)
        seen += [repr(here.platform.chats.messages), *(each.request.body.decode() for each in here.model.exchanges)]
    return "".join(seen)


WAYS = [in_the_chat, over_http, in_a_terminal, in_errors, by_a_hook]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_nothing_that_gets_out_holds_a_secret(home: Path, way: Callable[[Path], Awaitable[str]]) -> None:
    seen = await way(home)

    assert "[secret" in seen
    assert held(seen) == []
    assert in_files(home) == {}


async def test_a_question_and_a_summary_hold_no_secret(home: Path) -> None:
    script = ScriptedModel(lambda heard: [ASK, RISKY, SAID][min(heard.turn, 2)])
    async with harness(home.parent, script, OWNER) as here:
        await here.platform.say("Ask me", user="7", chat="1")
        asked = await here.shown(1)
        await here.platform.press(asked[-1].id, 0)
        await here.shown(2)
        chats = here.platform.chats
        seen = repr((chats.messages, chats.drafts))
        sessions = [session.id for session in await here.store.sessions.list()]
        log = [entry.event for session in sessions for entry in await here.store.history.entries(session)]

    assert "[secret" in seen
    assert held(seen) == []
    assert held(repr([event for event in log if not isinstance(event, Replied)])) == []


async def test_an_error_in_the_outbox_holds_no_secret(home: Path) -> None:
    async with (
        serving(openai_model(ScriptedModel(showing), keys=())) as server,
        another(settle_home(home, server.url), server) as here,
    ):
        outbox = here.runtime.store.outbox
        slot = await outbox.open(Letter(key="k", to=PLACE, content=Content(text="Hi")))
        assert slot is not None
        await outbox.complete(slot, SlotState.FAILED, (), error=f"404 of /bot{TOKENS['Telegram']}/send, {KNOWN}")
        (failed,) = await outbox.failed()

    assert "[secret SHOP_LOGIN]" in failed.error
    assert held(failed.error) == []
