"""No sink holds a secret: what tools answer, notes, skills, titles, logs, cassettes, exports, files of a home."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from bench.secret_samples import samples, value_of
from hermes_agent.app.opening import Options
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.messages import ToolResult
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import open_secrets
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say
from hermes_agent.replay.recorder import Recorder
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from tests.app.place import another, settle_home
from tests.cli.shell import typed

KNOWN = "correct/horse+battery&staple"
"""A value of `.env`, as it is and as programs write it."""
FORMS = {
    "plain": KNOWN,
    "base64": base64.b64encode(f"me:{KNOWN}".encode()).decode(),
    "base64 for addresses": base64.urlsafe_b64encode(f"x{KNOWN}".encode()).decode(),
    "hex": KNOWN.encode().hex(),
    "HEX": KNOWN.encode().hex().upper(),
    "an address": quote(KNOWN, safe=""),
    "reversed": KNOWN[::-1],
    "JSON": json.dumps(KNOWN),
    "wrapped": f"{KNOWN[:13]}\n    {KNOWN[13:]}",
    "bytes": KNOWN.encode().hex(" "),
}
SIGN_IN = "opaque-access-of-a-sign-in-4711"
TOKENS = samples(7)
SECRETS = {**{kind: value_of(kind, sample) for kind, sample in TOKENS.items()}, **FORMS, "sign-in": SIGN_IN}
FILE = "\n".join(f"{kind}:\n{sample}" for kind, sample in {**TOKENS, **FORMS, "sign-in": SIGN_IN}.items()) + "\n"


def held(text: str) -> list[str]:
    """The kinds whose secret is in a text."""
    return [kind for kind, secret in SECRETS.items() if secret in text]


def files_of(home: Path) -> Iterator[tuple[Path, str]]:
    """Every file of a home, also databases; but for those where secrets are kept, and copies of the workspace."""
    for path in home.rglob("*"):
        if path.is_file() and path.name not in (".env", "auth.json") and "checkpoints" not in path.parts:
            yield path, path.read_bytes().decode("utf-8", "replace")


CALLS = (
    Call("terminal", {"command": "cat tokens.txt"}),
    Call("read_file", {"path": "tokens.txt"}),
    Call("search_files", {"pattern": ".", "path": "."}),
    Call("terminal", {"command": "cat tokens.txt; seq 20000"}),
    Call("terminal", {"command": "cat tokens.txt no-such-file; exit 3"}),
    Call("terminal", {"command": "cat tokens.txt; touch shown; sleep 30", "background": True}),
    Call("process", {"action": "list"}),
    Call("execute_code", {"code": "print(open('tokens.txt').read())"}),
)


def reading(heard: Heard) -> Answer:
    """A model that reads the file in every way, and repeats it in the title."""
    if "You name conversations" in heard.system:
        return Say(f"Key {TOKENS['GitHub personal']}")
    return CALLS[heard.turn] if heard.turn < len(CALLS) else Say("Done.")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home with a known value and a sign-in, beside a workspace with the file; new files are open to everybody
    unless somebody closes them."""
    before = os.umask(0)
    root, work = tmp_path / "home", tmp_path / "work"
    root.mkdir(mode=0o700)
    work.mkdir()
    open_secrets(settle_home(root, "http://127.0.0.1:1"), {}).set("SHOP_LOGIN", KNOWN)
    (root / "auth.json").touch(0o600)
    (root / "auth.json").write_text(json.dumps({"version": 1, "sign_ins": {"x": {"access": SIGN_IN}}}))
    (work / "tokens.txt").write_text(FILE)
    yield root
    os.umask(before)


def test_what_tools_show_is_in_no_file_of_the_home(home: Path) -> None:
    session, title, results, bodies = asyncio.run(shown_by_tools(home))
    exported = "".join(typed(home, "sessions", "export", session, "-f", kind).out for kind in ("jsonl", "md", "html"))

    assert len(results) == len(CALLS)
    assert "[secret]" in results[0]
    assert "[secret SHOP_LOGIN]" in results[0]
    assert title.startswith("Key [secret")
    assert held("".join(results)) == []
    assert held(bodies) == []
    assert held(exported) == []
    assert {str(path): kinds for path, text in files_of(home) if (kinds := held(text))} == {}
    outputs = [*home.glob("cache/*/*/*/out"), *home.glob("cache/results/*"), home / "tape.jsonl"]
    held_in = [*home.glob("checkpoints/*"), home / "hermes.db", *home.glob("logs/*"), *outputs]
    assert len(outputs) >= 5
    assert [path for path in (*held_in, *(path.parent for path in outputs)) if _is_open(path)] == []


async def shown_by_tools(home: Path) -> tuple[str, str, list[str], str]:
    """A run that shows the file by every tool: its session, its title, what tools answered, and what the model was
    sent."""
    options = Options(tape=Recorder(home / "tape.jsonl", SystemClock()), titles=True, allow=("execute_code",))
    async with serving(openai_model(reading, keys=())) as server, another(_at(home, server), server, options) as here:
        await here.say("Look at the file.")
        await here.runtime.settled()
        logging.getLogger("hermes_agent.test").warning("It failed: %s", FILE)
        results = [text for entry in await here.log() for text in _results(entry.event)]
        session, title = here.record.id, (await here.runtime.hermes.record(here.record.id)).title
        bodies = "".join(exchange.request.body.decode() for exchange in server.exchanges)
    return session, title, results, bodies


def keeping(heard: Heard) -> Answer:
    """A model that keeps what it may never keep."""
    body = "---\nname: shop-login\ndescription: Log in to the shop. Use it for orders.\n---\n\n# Log in\n\n"
    calls = (
        Call("memory", {"target": "memory", "action": "add", "content": f"The shop's login is {KNOWN}."}),
        Call("memory", {"target": "memory", "action": "add", "content": f"Key {TOKENS['GitLab personal']}."}),
        Call("skill_manage", {"action": "create", "name": "shop-login", "content": f"{body}Use {FILE}"}),
    )
    return calls[heard.turn] if heard.turn < len(calls) else Say("Done.")


async def kept_by_model(home: Path) -> None:
    """A run whose model keeps it."""
    async with serving(openai_model(keeping, keys=())) as server, another(_at(home, server), server) as here:
        await here.say("Keep it.")
        await here.runtime.settled()


def test_notes_and_skills_hold_no_secret(home: Path) -> None:
    asyncio.run(kept_by_model(home))
    shown = "".join(typed(home, "learn", "approve", name).out for name in ("p1", "p2", "p3"))

    assert held(shown) == []
    kept = "".join(text for path, text in files_of(home) if path.suffix == ".md")
    assert "The shop's login is [secret SHOP_LOGIN]." in kept
    assert held(kept) == []


async def test_a_file_with_a_secret_is_changed_around_it_and_never_over_it(home: Path) -> None:
    key = TOKENS["Stripe secret"]
    path = home.parent / "work" / "settings.py"
    path.write_text(f'KEY = "{key}"\nPORT = 1\n')

    def changing(heard: Heard) -> Answer:
        calls = (
            Call("read_file", {"path": "settings.py"}),
            Call("write_file", {"path": "settings.py", "content": 'KEY = "[secret]"\nPORT = 2\n'}),
            Call("patch", {"path": "settings.py", "old_string": 'KEY = "[secret]"', "new_string": "KEY = 1"}),
            Call("patch", {"path": "settings.py", "old_string": "PORT = 1", "new_string": 'PORT = "[secret]"'}),
            Call("patch", {"path": "settings.py", "old_string": "PORT = 1", "new_string": "PORT = 2"}),
        )
        return calls[heard.turn] if heard.turn < len(calls) else Say("Done.")

    async with serving(openai_model(changing, keys=())) as server, another(_at(home, server), server) as here:
        await here.say("Use port 2.")
        failed = [part.is_error for entry in await here.log() for part in _parts(entry.event)]

    assert path.read_text() == f'KEY = "{key}"\nPORT = 2\n'
    assert failed == [False, True, True, True, False]


def _at(home: Path, server: ModelServer) -> Home:
    return settle_home(home, server.url)


def _parts(event: object) -> list[ToolResult]:
    message = getattr(event, "message", None)
    return [part for part in message.parts if isinstance(part, ToolResult)] if message else []


def _results(event: object) -> list[str]:
    return ["".join(getattr(piece, "text", "") for piece in part.parts) for part in _parts(event)]


def _is_open(path: Path) -> bool:
    """Whether others may read or write a file, or look into a folder that holds it."""
    mode = path.lstat().st_mode
    return not stat.S_ISLNK(mode) and not stat.S_ISSOCK(mode) and bool(mode & 0o077)
