"""Who reaches what with which hand: a person's shell and file tools against what is the owner's and other people's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_agent.core.messages import Role
from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.gateway.harness import Harness, harness

PEOPLE = "owners: ['1']\nmembers: ['7', '8']\nguests: ['9']\ngroups: ['5']\nstream: false\n"
SECRET = "k-4711-never-shown"


def script(heard: Heard) -> Say | Call:
    if heard.last.role is Role.TOOL:
        words = heard.last.parts[0].text
        return Say(f"Told: {'LEAK' if SECRET in words else ''} {words[:90]}")
    name, _, arguments = heard.last.text[heard.last.text.index("CALL ") + 5 :].partition(" ")
    return Call(name, json.loads(arguments[: arguments.rindex("}") + 1]))


def calls(path: str) -> dict[str, dict[str, object]]:
    return {
        "terminal": {"command": f"cat '{path}'"},
        "read_file": {"path": path},
        "search_files": {"path": path, "pattern": "k-4711"},
        "send_file": {"path": path},
    }


async def told(
    here: Harness, user: str, name: str, arguments: dict[str, object], chat: str = "", **more: object
) -> str:
    said = await here.ask(f"CALL {name} {json.dumps(arguments)}", user=user, chat=chat or user, **more)
    if "/approve" in said:  # They say yes to whatever they are asked.
        said = await here.ask("/approve", user=user, chat=chat or user, **more)
        await here.rest()
        said = (await here.shown(chat=chat or user))[-1].text
    return said


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's home folder, with what is theirs in it."""
    person = tmp_path / "person"
    monkeypatch.setenv("HOME", str(person))
    for name in (".ssh/id_x", "diary.txt", ".bash_history"):
        (person / name).parent.mkdir(parents=True, exist_ok=True)
        (person / name).write_text(SECRET)
    (tmp_path / "home/workspace").mkdir(parents=True)
    for name in ("workspace/plan.txt", "auth.json", "SOUL.md"):
        (tmp_path / "home" / name).write_text(SECRET)
    return person


async def test_a_member_reaches_their_own_folder_and_nobody_elses(tmp_path: Path, planted: Path) -> None:
    async with harness(tmp_path, script, PEOPLE, gateway="messages_per_minute: 1000") as here:
        assert "exit 0" in await told(here, "7", "terminal", {"command": "echo mine >mine.txt"})
        (folder,) = (tmp_path / "home/workspace/people").iterdir()
        (folder / "secret.txt").write_text(SECRET)
        assert (folder / "mine.txt").read_text() == "mine\n"
        assert "LEAK" in await told(here, "7", "read_file", {"path": "secret.txt"})
        paths = [
            *(str(planted / name) for name in (".ssh/id_x", "diary.txt", ".bash_history")),
            *(str(tmp_path / "home" / name) for name in ("SOUL.md", "auth.json", "workspace/plan.txt", "hermes.db")),
            *("../../plan.txt", f"../{folder.name}/secret.txt"),
        ]

        for path in paths:
            for name, arguments in calls(path).items():
                said = await told(here, "8", name, arguments)
                assert "LEAK" not in said, (name, path, said)
        outside = await told(here, "8", "terminal", {"command": f"cat {planted}/diary.txt", "outside": True})
        assert "way out of the wall" in outside or "outside" in outside
        assert "LEAK" not in outside


async def test_a_group_has_a_folder_of_its_own_also_where_the_owner_began_it(tmp_path: Path, planted: Path) -> None:
    del planted
    async with harness(tmp_path, script, f"{PEOPLE}shared: true\n") as here:
        group = {"chat": "5", "group": True, "addressed": True}
        assert "exit 0" in await told(here, "1", "terminal", {"command": "echo ours >ours.txt"}, **group)

        assert "1|ours" in await told(here, "7", "read_file", {"path": "ours.txt"}, **group)
        assert "LEAK" not in await told(here, "7", "read_file", {"path": "../../plan.txt"}, **group)
        assert not (tmp_path / "home/workspace/ours.txt").exists()


async def test_where_no_wall_stands_a_member_has_no_shell_and_file_tools_for_their_folder(
    tmp_path: Path, planted: Path
) -> None:
    async with harness(tmp_path, script, PEOPLE, more="terminal: {jail: none}\napprovals: {mode: 'off'}\n") as here:
        for name, arguments in calls(str(planted / "diary.txt")).items():
            assert "LEAK" not in await told(here, "7", name, arguments)
        assert "no tool `terminal`" in await told(here, "7", "terminal", {"command": "true"})
        assert "Created" in await told(here, "7", "write_file", {"path": "a.txt", "content": "x"})
        assert "needs" in await told(here, "7", "write_file", {"path": f"{planted}/a.txt", "content": "x"})
        assert not (planted / "a.txt").exists()
        await told(here, "1", "terminal", {"command": "true"})  # The owner is told of SOUL.md first.
        assert "exit 0" in await told(here, "1", "terminal", {"command": "true"})
