"""The access matrix over the API, with the shell as a column: nothing of the owner's or of another's is reached."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes_agent.core.messages import Role, ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.walls import Walls
from tests.api.served import GUEST_KEY, MEMBER_KEY, OTHER_KEY, OWNER_KEY, Server, served, until

SECRET = "k-4711-never-shown"
SETTINGS = "agent: {{max_turns: 200}}\nterminal: {{jail: {}}}\n"
OVER = ("answered", "failed", "stopped")
JAILS = ["bubblewrap", "landlock", "none"]
SAID = "I was here"
LEFT = {"own.txt", "left", "out", ".kept"}
"""Files of somebody else: workspace, temporary folder, output, shell."""
SHELL = {"terminal", "execute_code", "process"}


def calls(path: str) -> list[Call]:
    """Every way in which a model can read a file or folder, or change it, by the tool's name."""
    inside, patch = f"{path}/new", f"*** Begin Patch\n*** Add File: {path}/new\n+{SAID}\n*** End Patch"
    shell = f"cat '{path}' '{path}'/*; grep -rh k-4711 '{path}'; for at in '{path}' '{inside}'; do echo >>$at; done"
    code = f"import os, shutil\nos.system({shell!r})\nprint(open({path!r}).read())"
    return [
        Call("terminal", {"command": shell}),
        Call("terminal", {"command": f"{shell} # after", "background": True}),
        Call("terminal", {"command": f"{shell} # outside", "outside": True}),
        Call("terminal", {"command": "cat *", "workdir": path}),
        Call("execute_code", {"code": code}),
        Call("execute_code", {"code": f"import tools\nprint(tools.read_file(path={path!r}))"}),
        Call("read_file", {"path": path}),
        Call("search_files", {"path": path, "pattern": "k-4711"}),
        Call("write_file", {"path": path, "content": SAID}),
        Call("write_file", {"path": inside, "content": SAID}),
        Call("patch", {"path": path, "old_string": SECRET, "new_string": SAID}),
        Call("patch", {"patch": patch}),
    ]


def script(heard: Heard) -> Say | list[Call]:
    """The calls of the message one after the other, then what their results held."""
    begun = max(at for at, message in enumerate(heard.messages) if message.role is Role.USER)
    wanted = json.loads(heard.messages[begun].text)
    made = sum(message.role is Role.ASSISTANT for message in heard.messages[begun:])
    if made < len(wanted):
        return [Call(*wanted[made])]
    results = [part for message in heard.messages[begun:] for part in message.parts if isinstance(part, ToolResult)]
    return Say(json.dumps([part.text for part in results]))


async def done(server: Server, key: str, *wanted: Call) -> list[str]:
    """What the model is told when it makes these calls; whoever is asked says yes."""
    words = json.dumps([(call.name, dict(call.arguments)) for call in wanted])
    run = (await server.ask("POST", "/v1/runs", {"input": words}, key=key)).json()["id"]
    while (facts := await until(server, run, "waiting", *OVER, key=key))["status"] == "waiting":
        answer = {"answer": "once", "question": facts["question"]["id"]}
        await server.ask("POST", f"/v1/runs/{run}/answer", answer, key=key)
        await asyncio.sleep(0)
    assert facts["status"] == "answered", facts
    told: list[str] = json.loads(facts["text"])
    assert len(told) == len(wanted), told
    return told


@pytest.fixture(params=JAILS)
def jail(request: pytest.FixtureRequest) -> str:
    try:
        if request.param != "none":
            jail_of(request.param, Walls())
    except CannotJail as reason:
        pytest.skip(f"no {request.param} here: {reason}")
    return str(request.param)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The owner's files, in their home folder and in the home of Hermes."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    names = ("person/.ssh/id_x", "person/diary.txt", "person/.bash_history", "person/project/notes.txt")
    home = ("SOUL.md", "auth.json", "memories/MEMORY.md", "workspace/plan.txt", "cache/input/0123456789abcdef0123.txt")
    files = [tmp_path / name for name in (*names, *(f"home/{each}" for each in home))]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{SECRET}\n")
    return files


async def bert_works(server: Server, jail: str) -> None:
    """Somebody else leaves a secret wherever a session leaves anything: workspace, /tmp, outputs, spilled results."""
    told = await done(
        server,
        OTHER_KEY,
        Call("write_file", {"path": "own.txt", "content": f"{SECRET}\n" * 4_000}),
        Call("search_files", {"pattern": "k-4711", "limit": 4_000}),
        *([] if jail == "none" else BERT),
    )
    assert all(SECRET in each for each in told[1:4]), told
    (result,) = (server.runtime.home.cache / "results").glob("*/*.txt")
    assert SECRET in (await done(server, OTHER_KEY, Call("read_file", {"path": str(result)})))[0]


BERT = (
    Call("terminal", {"command": f"export KEPT={SECRET}; echo {SECRET} | tee $TMPDIR/left $HOME/left"}),
    Call("terminal", {"command": f"yes {SECRET} | head -n 50000"}),
    Call("terminal", {"command": f"echo {SECRET}; echo {SECRET} >&2", "background": True}),
)


def left_by_bert(home: Path) -> list[Path]:
    """What holds the secret, one file of each name and folder of the home."""
    found = (
        path
        for path in home.rglob("*")
        if path.is_file() and path.parts[len(home.parts)] not in ("logs", "checkpoints")
    )
    held = [path for path in found if "hermes.db" not in path.name and SECRET.encode() in path.read_bytes()]
    return list({(path.parts[len(home.parts)], path.name): path for path in held}.values())


def written(folder: Path, over: Mapping[Path, bytes]) -> list[Path]:
    """What is not what it was, or new and not in the temporary folder of anna's own session."""
    others = {path.parents[1] for path in over if ".sessions" in path.parts}
    changed = [path for path, content in over.items() if not path.exists() or path.read_bytes() != content]
    return [
        *changed,
        *(path for path in folder.rglob("new") if ".sessions" not in path.parts or others & {*path.parents}),
    ]


@pytest.mark.timeout(120)
async def test_a_member_s_run_reaches_nothing_of_the_owner_s_or_of_another_s(
    tmp_path: Path, planted: list[Path], jail: str, full: bool
) -> None:
    """Each way is tried on each file with `--full`, else on every third of them."""
    async with served(tmp_path, script, more=SETTINGS.format(jail)) as server:
        await bert_works(server, jail)
        files = {*planted, *await asyncio.to_thread(left_by_bert, tmp_path / "home")}
        before = {path: path.read_bytes() for path in files}
        folders = [path.parent for path in files if path.name in LEFT]
        others = ("person", "home", "home/hermes.db", "home/.env", "home/logs", "home/skills/new")

        reached = []
        for at, target in enumerate([*sorted(files), *folders, *(tmp_path / name for name in others)]):
            ways = calls(str(target)) if full else calls(str(target))[at % 3 :: 3]
            wanted = [call for call in ways if jail != "none" or call.name not in SHELL]
            for call, told in zip(wanted, await done(server, MEMBER_KEY, *wanted), strict=True):
                reached += [(call, told)] if SECRET in told else []

        offered = {tool.name for tool in server.model.asked[-1].tools}
        assert {path.name for path in files} >= LEFT or jail == "none"
        assert reached == []
        assert await asyncio.to_thread(written, tmp_path, before) == []
        assert offered & SHELL == (set() if jail == "none" else SHELL)


async def test_a_guest_has_neither_a_shell_nor_files(tmp_path: Path, planted: list[Path]) -> None:
    async with served(tmp_path, script, more=SETTINGS.format("auto")) as server:
        told = await done(server, GUEST_KEY, *calls(str(planted[1]))[-3:])

    assert all("There is no tool" in each for each in told), told


@pytest.mark.parametrize("jail", ["none"], indirect=True)
async def test_the_owner_has_a_shell_where_no_wall_stands(tmp_path: Path, planted: list[Path], jail: str) -> None:
    del planted
    async with served(tmp_path, script, more=SETTINGS.format(jail)) as server:
        assert "exit 0" in (await done(server, OWNER_KEY, Call("terminal", {"command": "true"})))[0]
