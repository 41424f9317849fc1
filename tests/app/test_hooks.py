"""Hooks: run when they were allowed as they stand; they stop, change and add, and harm nobody when they fail."""

import json
from pathlib import Path

import pytest

from hermes_agent.app.hooks import (
    CONSENTS,
    EVENTS,
    Consents,
    HookFailed,
    Hooks,
    Verdict,
    check,
    hooks_of,
    known_hooks,
    mark_of,
    run_hook,
)
from hermes_agent.app.settings import HookSettings, Settings
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.core.events import MessageTaken, ToolEnded
from hermes_agent.core.messages import Trust, trust_of
from hermes_agent.host.config import load
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, counting, settle_home

ENV = {"PATH": "/usr/bin:/bin"}


def shell(command: str, *on: str, **more) -> HookSettings:
    return HookSettings(on=on or ("run:end",), command=command, **more)


def allowed(root: Path, **hooks: HookSettings) -> Hooks:
    for name, hook in hooks.items():
        Consents(root / CONSENTS).give(name, mark_of(hook, root))
    return Hooks(hooks, root, ENV)


async def test_a_hook_reads_the_event_and_answers_in_json(tmp_path):
    hook = shell('cat > seen.json; echo \'{"context": "noted", "text": "other"}\'')
    verdict = await allowed(tmp_path, a=hook).fire("run:end", {"session": "s"})

    assert json.loads((tmp_path / "seen.json").read_text()) == {"event": "run:end", "session": "s"}
    assert verdict == Verdict(context="noted", text="other")


async def test_a_hook_reads_also_what_no_encoding_holds(tmp_path):
    verdict = await allowed(tmp_path, a=shell("cat > seen.json")).fire("run:end", {"text": "a\ud800ü"})

    assert json.loads((tmp_path / "seen.json").read_text())["text"] == "a\ud800ü"
    assert verdict == Verdict()


async def test_a_python_hook_runs_in_a_process_of_its_own(tmp_path):
    (tmp_path / "one.py").write_text(
        "def handle(event):\n    print('aside')\n    return {'text': event['text'].upper()}\n"
    )
    (tmp_path / "two.py").write_text("async def handle(event):\n    return {'block': True, 'reason': event['text']}\n")
    hooks = allowed(
        tmp_path,
        one=HookSettings(on=("reply:before",), python="one.py"),
        two=HookSettings(on=("reply:before",), python="two.py"),
    )
    verdict = await hooks.fire("reply:before", {"text": "hi"})

    assert (verdict.text, verdict.block) == ("HI", "HI")


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("true", Verdict()),
        ("echo just words", Verdict()),
        ("echo '[1]'", Verdict()),
        ("echo no >&2; exit 2", Verdict(block="no")),
        ("exit 2", Verdict(block="A hook said no.")),
        ('echo \'{"decision": "block", "reason": "why"}\'', Verdict(block="why")),
        ('echo \'{"block": "because"}\'', Verdict(block="because")),
    ],
)
async def test_what_a_hook_may_answer(tmp_path, command, verdict):
    assert await run_hook(shell(command), {}, tmp_path, ENV) == verdict


async def test_a_hook_may_say_much_and_leave_something_running(tmp_path):
    assert (await run_hook(shell("yes no | head -c 300000 >&2; exit 2"), {}, tmp_path, ENV)).block.startswith("no\nno")
    assert await run_hook(shell("sleep 2 & echo why >&2; exit 2", seconds=9), {}, tmp_path, ENV) == Verdict(block="why")


@pytest.mark.parametrize(
    "command",
    [
        *(
            "sh hook.sh",
            "cd . && sh -c 'sh hook.sh'",
            "sh <hook.sh",
            "$HERMES_HOME/hook.sh",
            '"${HERMES_HOME}/hook.sh"',
        ),
        *("$HOME/hook.sh", 'sh "${HOME}/hook.sh"', "~/hook.sh", "sh $PWD/hook.sh"),
    ],
)
def test_what_is_allowed_is_also_what_is_in_the_files_that_a_command_names(tmp_path, command, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "hook.sh").write_text("true")
    before = mark_of(shell(command), tmp_path)
    (tmp_path / "hook.sh").write_text("false")

    assert mark_of(shell(command), tmp_path) != before


@pytest.mark.parametrize(
    "command", ["sh 'my hooks/a.sh'", 'sh "$HERMES_HOME/my hooks/a.sh"', r"cat x; sh my\ hooks/a.sh"]
)
def test_a_file_whose_path_holds_blanks_is_one_of_them(tmp_path, command):
    (tmp_path / "my hooks").mkdir()
    (tmp_path / "my hooks/a.sh").write_text("true")
    before = mark_of(shell(command), tmp_path)
    (tmp_path / "my hooks/a.sh").write_text("false")

    assert mark_of(shell(command), tmp_path) != before
    assert mark_of(shell("sh 'left open"), tmp_path) == mark_of(shell("sh 'left open"), tmp_path)


@pytest.mark.parametrize(
    "command", ["cat >> diary", "cat >>logs/diary", "cat > 'logs/diary'", "tee -a diary", "cat >'my notes/diary'"]
)
def test_what_a_hook_writes_does_not_make_it_another(tmp_path, command):
    before = mark_of(shell(command), tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "my notes").mkdir()
    for name in ("diary", "logs/diary", "my notes/diary"):
        (tmp_path / name).write_text("Dear diary")

    assert mark_of(shell(command), tmp_path) == before


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (shell("echo it broke >&2; exit 3"), "ended with 3: it broke"),
        (shell("sleep 20", seconds=0.2), r"more than 0\.2 s"),
        (HookSettings(on=("run:end",), python="gone.py"), "ended with 1"),
    ],
)
async def test_a_hook_that_fails_says_how(tmp_path, hook, words):
    with pytest.raises(HookFailed, match=words):
        await run_hook(hook, {}, tmp_path, ENV)


async def test_a_hook_that_nobody_allowed_is_not_run_and_its_owner_is_told_once(tmp_path, caplog):
    hooks = Hooks({"a": shell("touch ran")}, tmp_path, ENV)
    for _ in range(2):
        assert await hooks.fire("run:end", {}) == Verdict()

    assert not (tmp_path / "ran").exists()
    assert [record.message for record in caplog.records] == [
        "the hook a is not run: it waits for your consent: `hermes hooks allow a`"
    ]


async def test_what_was_changed_has_to_be_allowed_anew(tmp_path):
    script = tmp_path / "hook.sh"
    script.write_text("touch ran")
    hooks = allowed(tmp_path, a=shell("sh ./hook.sh"))
    script.write_text("touch ran-too")
    await hooks.fire("run:end", {})

    assert not (tmp_path / "ran-too").exists()
    (known,) = known_hooks({"a": shell("sh ./hook.sh")}, tmp_path)
    assert not known.allowed
    Consents(tmp_path / CONSENTS).give("a", known.mark)
    await hooks.fire("run:end", {})
    assert (tmp_path / "ran-too").exists()


def test_consent_is_given_and_taken_back_and_a_damaged_file_allows_nothing(tmp_path):
    consents = Consents(tmp_path / CONSENTS)
    consents.give("a", "x")
    assert (consents.has("a", "x"), consents.has("a", "y")) == (True, False)
    assert (consents.take_back("a"), consents.take_back("a")) == (True, False)
    for content in ("{", "[]"):
        (tmp_path / CONSENTS).write_text(content)
        assert not consents.has("a", "x")


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (HookSettings(command="true"), "is none of"),
        (HookSettings(on=("run:begin",), command="true"), "run:begin"),
        (HookSettings(on=("run:end",)), "say what is run"),
        (HookSettings(on=("run:end",), command="true", python="a.py"), "say what is run"),
        (HookSettings(on=("run:end",), command="true", tools="("), "not a regular expression"),
    ],
)
def test_a_hook_that_can_never_run_says_why(tmp_path, hook, words):
    with pytest.raises(ConfigError, match=words):
        check("a", hook)
    assert words in known_hooks({"a": hook}, tmp_path)[0].problem


def test_a_python_file_that_is_not_there_is_a_problem(tmp_path):
    (known,) = known_hooks({"a": HookSettings(on=("run:end",), python="gone.py")}, tmp_path)
    assert known.problem.endswith("is not there.")
    assert known_hooks({"a": shell("'")}, tmp_path)[0].problem == ""


async def test_the_first_no_is_the_last_word(tmp_path):
    hooks = allowed(tmp_path, a=shell("echo stop >&2; exit 2"), b=shell("touch ran"))
    assert (await hooks.fire("run:end", {})).block == "stop"
    assert not (tmp_path / "ran").exists()


async def test_secrets_of_the_environment_are_not_shown_to_hooks(tmp_path):
    hook = shell("env > seen")
    Consents(tmp_path / CONSENTS).give("a", mark_of(hook, tmp_path))
    await hooks_of({"a": hook}, tmp_path, {**ENV, "MY_API_KEY": "x"}).fire("run:end", {})

    seen = (tmp_path / "seen").read_text()
    assert "MY_API_KEY" not in seen
    assert f"HERMES_HOME={tmp_path}" in seen


CONFIG = """hooks:
  guard:
    on: [tool:before]
    tools: todo
    command: "grep -q forbidden && {{ echo 'Not that.' >&2; exit 2; }}; exit 0"
  after:
    on: [tool:after]
    command: "echo '{{\\"context\\": \\"seen\\"}}'"
  letter:
    on: [message:received]
    command: 'case "$(cat)" in *refused*) exit 2;; *) echo "{{\\"context\\": \\"from a hook\\"}}";; esac'
  reply:
    on: [reply:before]
    command: "echo '{{\\"text\\": \\"Another reply.\\"}}'"
  diary:
    on: [run:start, run:end]
    command: 'cat >> diary; echo >> diary'
"""


async def test_a_whole_run_with_every_hook(tmp_path):
    script = [Call("todo", {"todos": [{"id": "1", "content": "forbidden", "status": "pending"}]}), Say("Done.")]
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, CONFIG.replace("{{", "{").replace("}}", "}"))
        for known in known_hooks(load(home.ensure(), Settings).value.hooks, home.root):
            Consents(home.root / CONSENTS).give(known.name, known.mark)
        async with another(home, server) as here:
            ended = await here.say("Hi")
            entries = await here.log()
            with pytest.raises(HermesError, match="A hook said no"):
                await here.tell("refused")
        diary = [json.loads(line) for line in (home.root / "diary").read_text().splitlines()]

    (taken,) = [entry.event for entry in entries if isinstance(entry.event, MessageTaken)]
    (call,) = [entry.event for entry in entries if isinstance(entry.event, ToolEnded)]
    assert taken.message.text == "Hi\n\n[hook: from a hook]"
    assert call.is_error
    assert "Not that." in str(call.message)
    assert "[hook: seen]" in str(call.message)
    shown = [*taken.message.parts, *call.message.parts[0].parts]
    theirs = [part for part in shown if any(words in part.text for words in ("from a hook", "Not that.", "seen"))]
    assert [trust_of(part) for part in theirs] == [Trust.OUTSIDE] * 3
    assert ended.text == "Another reply."
    assert [each["event"] for each in diary] == ["run:start", "run:end"]
    assert diary[1]["text"] == "Another reply."


async def test_a_guard_that_breaks_says_no(tmp_path):
    script = [Call("todo", {}), Say("Done.")]
    more = "hooks:\n  guard:\n    on: [tool:before]\n    command: exit 5\n"
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, more)
        (known,) = known_hooks(load(home.ensure(), Settings).value.hooks, home.root)
        Consents(home.root / CONSENTS).give(known.name, known.mark)
        async with another(home, server) as here:
            assert (await here.say("Hi")).text == "Done."
            (call,) = [entry.event for entry in await here.log() if isinstance(entry.event, ToolEnded)]
    assert "The hook guard failed: it ended with 5" in str(call.message)


async def test_without_hooks_nothing_stands_around(tmp_path):
    async with (
        serving(openai_model(counting, keys=())) as server,
        another(settle_home(tmp_path / "home", server.url), server) as here,
    ):
        assert here.runtime.hooks is None
    assert len(EVENTS) == 9
