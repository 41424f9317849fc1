"""No tool for files reads or changes the home of Hermes, by whatever path, link, mount or workspace it comes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hermes_agent.app.chats.file_delivery import SendTools
from hermes_agent.core.chat import Attachment
from hermes_agent.core.errors import HermesError
from hermes_agent.sandbox.walls import Walls
from hermes_agent.tools.files.guard import Guard, ReadLog
from hermes_agent.tools.files.tools import FileTools
from hermes_agent.tools.files.writing import Writer
from hermes_agent.tools.schema import collect
from tests.tools.bench import Bench

SECRET, MARK = "k-4711-never-shown", "planted by nobody"
CLOSED = (".env", "auth.json", "hermes.db", "hermes.db-wal", "approvals.yaml", "config.yaml", "memories/MEMORY.md")
KEPT = (*CLOSED, "SOUL.md", "skills/tea/SKILL.md", "skills/new/SKILL.md", "checkpoints/x", "cache/exec/a/b/env")
WAYS = ("plain", "dots", "link", "link to its parent", "proc", "handle", "from the workspace", "in the workspace")


@pytest.fixture
def person(tmp_path: Path) -> Path:
    home = tmp_path / "person/.hermes"
    for name in KEPT:
        if "new" not in name:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(f"{SECRET}\n")
    (tmp_path / "person/work").mkdir()
    return tmp_path / "person"


@pytest.fixture
def handle(person: Path) -> Iterator[int]:
    opened = os.open(person / ".hermes", os.O_RDONLY)
    yield opened
    os.close(opened)


def tools_of(person: Path, workspace: Path) -> tuple[Bench, list[str]]:
    home, sent = person / ".hermes", []

    async def hand_over(_session: str, _key: str, file: Attachment) -> None:
        sent.append(file.path)

    walls = Walls(closed=(str(home),), workspaces=str(home / "workspace"))
    guard = Guard(home=home, person=person, walls=lambda: walls)
    files = FileTools(guard=guard, log=ReadLog(person.parent / "log"), writer=Writer())
    tools, aside = collect([files, SendTools(guard=guard, hand_over=hand_over)])
    assert not aside
    return Bench(tools, workspace), sent


def by(way: str, person: Path, handle: int) -> tuple[Path, str]:
    """A workspace, and the path of the home as somebody in it would write it."""
    work, home = person / "work", person / ".hermes"
    (work / "in").symlink_to("../.hermes")
    (work / "up").symlink_to(person)
    return {
        "plain": (work, str(home)),
        "dots": (work, "../work/.././.hermes"),
        "link": (work, "in"),
        "link to its parent": (work, "up/.hermes"),
        "proc": (work, f"/proc/self/root{home}"),
        "handle": (work, f"/proc/self/fd/{handle}"),
        "from the workspace": (person, ".hermes"),
        "in the workspace": (home, "."),
    }[way]


CALLS: Mapping[str, Mapping[str, str]] = {
    "read_file": {"path": "{}"},
    "search_files": {"path": "{}", "pattern": "k-4711"},
    "send_file": {"path": "{}"},
    "write_file": {"path": "{}", "content": MARK},
    "patch": {"path": "{}", "old_string": SECRET, "new_string": MARK},
    "patch: add": {"patch": f"*** Begin Patch\n*** Add File: {{}}\n+{MARK}\n*** End Patch"},
    "patch: delete": {"patch": "*** Begin Patch\n*** Delete File: {}\n*** End Patch"},
    "patch: move": {"patch": "*** Begin Patch\n*** Update File: {}\n*** Move to: stolen\n@@\n-k\n+k\n*** End Patch"},
}


def contents(home: Path) -> dict[str, str]:
    return {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}


async def attempt(bench: Bench, call: str, path: str) -> str:
    arguments = {name: value.replace("{}", path) for name, value in CALLS[call].items()}
    try:
        return await bench(call.partition(":")[0], **arguments)
    except HermesError as error:
        return f"{error} {error.hint}"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", WAYS)
async def test_the_home_is_closed_by_every_way_to_every_tool(person: Path, handle: int, way: str, call: str) -> None:
    before = contents(person / ".hermes")
    workspace, path = by(way, person, handle)
    bench, sent = tools_of(person, workspace)

    said = {name: await attempt(bench, call, f"{path}/{name}") for name in KEPT}

    assert contents(person / ".hermes") == before
    readable = ("skills/tea/SKILL.md",) if call in ("read_file", "search_files", "send_file") else ()
    assert [name for name, words in said.items() if SECRET in words and name not in readable] == []
    assert [path for path in sent if not path.endswith("skills/tea/SKILL.md")] == []


@pytest.mark.parametrize("call", CALLS)
async def test_a_hard_link_to_its_state_is_its_state(person: Path, call: str) -> None:
    bench, sent = tools_of(person, person / "work")
    for name in (".env", "auth.json", "hermes.db", "approvals.yaml"):
        (person / "work" / f"mine{name}").hardlink_to(person / ".hermes" / name)
        before = contents(person / ".hermes")

        assert SECRET not in await attempt(bench, call, f"mine{name}")
        assert (contents(person / ".hermes"), sent) == (before, [])


@pytest.fixture(params=["", "memories", "skills"])
def mounted(person: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The part of the home that is mounted at `mounted` in the workspace."""
    place = person / "work/mounted"
    place.mkdir()
    if subprocess.run(["mount", "--bind", person / ".hermes" / request.param, place], check=False).returncode:
        pytest.skip("this machine does not let us mount")
    yield request.param
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("call", CALLS)
async def test_a_mount_of_it_is_the_home(person: Path, call: str, mounted: str) -> None:
    before = contents(person / ".hermes")
    bench, sent = tools_of(person, person / "work")

    for name in ("memories/MEMORY.md", "skills/tea/SKILL.md", "new", ".env"):
        said = await attempt(bench, call, f"mounted/{name.removeprefix(f'{mounted}/')}")
        assert SECRET not in said or name.startswith("skills")

    assert contents(person / ".hermes") == before
    assert [path for path in sent if not path.endswith("SKILL.md")] == []


async def test_a_search_above_it_finds_nothing_of_it(person: Path) -> None:
    (person / "work/mine.txt").write_text(SECRET)
    bench, _ = tools_of(person, person)

    said = await bench("search_files", pattern="k-4711", target="content")
    names = await bench("search_files", pattern="*", target="files")

    assert [line.split(":")[0] for line in said.splitlines()] == [".hermes/skills/tea/SKILL.md", "work/mine.txt"]
    assert [name for name in names.splitlines() if name.startswith(".hermes") and "skills" not in name] == []


async def test_the_workspace_in_it_and_what_prompts_name_there_stay_open(person: Path) -> None:
    for name in ("workspace", "cache/results", "cache/input", "cache/jailed/s1/c1"):
        (person / ".hermes" / name).mkdir(parents=True)
        (person / ".hermes" / name / "out").write_text("shown")
    bench, _ = tools_of(person, person / ".hermes/workspace")

    assert "Wrote" in await bench("read_file", path="out") + await bench("write_file", path="out", content="x")
    for name in ("cache/results/out", "cache/input/out", "cache/jailed/s1/c1/out", "cache/exec/../jailed/s1/c1/out"):
        assert "shown" in await bench("read_file", path=f"{person}/.hermes/{name}")
        assert "home of Hermes" in await attempt(bench, "write_file", f"{person}/.hermes/{name}")
