"""Hooks around what is said in chats: told of everything, heeded where they may decide, in nobody else's way."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_agent.app.hooks import CONSENTS, Consents, known_hooks
from hermes_agent.providers.demo.script import Call, Say
from tests.gateway.harness import eventually, harness

PEOPLE = "owners: ['7', '8']\nstream: false\n"
DIARY = """hooks:
  diary:
    on: [message:received, run:start, run:end, tool:before, tool:after, reply:before]
    python: diary.py
    seconds: 30
"""
WRITES = """import json, os
def handle(event):
    with open(os.environ["HERMES_HOME"] + "/diary", "a") as file:
        file.write(json.dumps(event) + "\\n")
    print("not an answer")
"""


@asynccontextmanager
async def hooked(path: Path, script, hooks: str, *, allows: bool = True, channel: str = PEOPLE):
    """A house whose hooks are allowed as they stand."""
    (path / "home").mkdir()
    (path / "home/diary.py").write_text(WRITES)
    async with harness(path, script, channel, gateway="drain_seconds: 0\n", more=hooks) as here:
        if allows:
            allow(here)
        yield here


def allow(here) -> None:
    root = here.gateway.runtime.home.root
    for known in known_hooks(here.gateway.runtime.settings.hooks, root):
        Consents(root / CONSENTS).give(known.name, known.mark)


def diary(path: Path) -> list[dict]:
    file = path / "home/diary"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def test_a_hook_is_told_of_everything_in_its_order(tmp_path: Path):
    script = [Call("todo", {"todos": [{"id": "1", "content": "Tea", "status": "pending"}]}), Say("Done.")]
    async with hooked(tmp_path, script, DIARY) as here:
        assert await here.ask("Make tea") == "Done."
        await eventually(lambda: len(diary(tmp_path)) == 6)
        told = {each["event"]: each for each in diary(tmp_path)}

    assert told.keys() == {"message:received", "run:start", "tool:before", "tool:after", "reply:before", "run:end"}
    assert (told["message:received"]["principal"], told["message:received"]["text"]) == ("fake:7", "Make tea")
    assert (told["tool:before"]["tool"], told["tool:before"]["principal"]) == ("todo", "fake:7")
    assert told["reply:before"]["text"] == told["run:end"]["text"] == "Done."


async def test_nothing_runs_that_nobody_allowed_nor_what_was_changed_since(tmp_path: Path):
    async with hooked(tmp_path, lambda _: Say("Hello."), DIARY, allows=False) as here:
        assert await here.ask("Hi") == "Hello."
        assert not diary(tmp_path)

        allow(here)
        assert await here.ask("Hi") == "Hello."
        await eventually(lambda: len(diary(tmp_path)) == 4)
        (tmp_path / "home/diary.py").write_text(WRITES + "# changed")
        assert await here.ask("Hi") == "Hello."
        await here.rest()
    assert len(diary(tmp_path)) == 4


NO = """hooks:
  no:
    on: [message:received]
    command: 'case "$(cat)" in *secret*) echo "Not that here." >&2; exit 2;; esac'
"""


async def test_who_writes_what_a_hook_refuses_is_told_why(tmp_path: Path):
    async with hooked(tmp_path, lambda _: Say("Hello."), NO) as here:
        assert await here.ask("It is a secret") == "Not that here."
        assert not here.model.exchanges
        assert await here.ask("Hi") == "Hello."


async def test_words_that_answer_a_question_pass_the_hooks_too(tmp_path: Path):
    script = [Call("clarify", {"question": "Which one?"}), Say("Done.")]
    async with hooked(tmp_path, script, NO) as here:
        assert "Which one?" in await here.ask("Do it")
        assert await here.ask("The secret one") == "Not that here."
        assert await here.ask("The green one") == "Done."
        assert "The green one" in str(here.model.asked[-1].messages)


SLOW = """hooks:
  slow:
    on: [message:received]
    command: 'case "$(cat)" in *slowly*) sleep 61.5;; esac'
    seconds: 60
"""


async def test_a_hook_that_hangs_holds_up_nobody_else_and_no_stop(tmp_path: Path):
    async with hooked(tmp_path, lambda _: Say("Hello."), SLOW) as here:
        await here.platform.say("Think slowly", user="7")
        began = time.monotonic()
        assert await here.ask("Hi", user="8", chat="2") == "Hello."
        assert await here.ask("/stop", user="7") == "Nothing is running."
        assert time.monotonic() - began < 20


BROKEN = """hooks:
  broken:
    on: [message:received, run:start, run:end, tool:after, reply:before]
    command: '{command}'
    seconds: 0.5
"""


@pytest.mark.parametrize(
    "command",
    ["sleep 60", "head -c 200000 /dev/urandom", "exit 3", "kill -9 $$", "yes >&2", "sleep 2.5 & echo no words"],
)
async def test_a_hook_that_breaks_changes_nothing(tmp_path: Path, command: str):
    script = [Call("todo", {}), Say("Done.")]
    async with hooked(tmp_path, script, BROKEN.format(command=command)) as here:
        assert await here.ask("Hi") == "Done."


async def test_a_reply_that_a_hook_changes_is_what_the_chat_shows(tmp_path: Path):
    hooks = 'hooks:\n  a:\n    on: [reply:before]\n    command: "echo \'{\\"text\\": \\"Signed.\\"}\'"\n'
    async with hooked(tmp_path, lambda _: Say("Hello."), hooks) as here:
        assert await here.ask("Hi") == "Signed."
