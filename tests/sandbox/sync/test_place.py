"""Commands on another machine work on the files that are here, and what they make comes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from hermes_agent.sandbox.backends.ssh import build
from hermes_agent.sandbox.place import Command, Ended, Place, PlaceFailed
from hermes_agent.sandbox.settings import SshSettings
from hermes_agent.sandbox.walls import Walls
from hermes_agent.tools.code import CodeTools
from hermes_agent.tools.schema import collect
from hermes_agent.tools.settings import CodeSettings, TerminalSettings
from hermes_agent.tools.shell import ShellTools
from tests.sandbox.sshd import NoServer, server
from tests.sandbox.sync.local_shell import files
from tests.tools.bench import Bench


@pytest.fixture
def settings(tmp_path: Path) -> SshSettings:
    try:
        return replace(server(), folder=str(tmp_path / "machine"))
    except NoServer as reason:
        pytest.skip(f"no ssh server here: {reason}")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


def place_of(settings: SshSettings, folder: Path) -> Place:
    return build(folder / "kept", settings, Walls(), {}, {}, home=str(folder / "account"))


async def done(place: Place, work: Path, text: str, name: str = "a", workdir: str = "") -> tuple[Ended, str]:
    command = Command(text=text, folder=str(work), shell="g", workdir=workdir)
    running = await place.start(f"g/{name}", command)
    ended = await running.wait()
    return ended, (await running.read(0, 10_000)).decode()


async def test_a_command_finds_the_files_and_what_it_changes_comes_back(
    settings: SshSettings, work: Path, tmp_path: Path
) -> None:
    place = place_of(settings, tmp_path)
    _, output = await done(place, work, "pwd; cat a.txt; echo two >>a.txt; mkdir out; echo made >out/b; exit 3")
    (work / "a.txt").write_text("three\n")
    ended, again = await done(place, work, "cat a.txt; rm out/b", "b")

    assert output == f"{tmp_path}/machine{work}\none\n"
    assert again == "three\n"
    assert (ended.code, ended.notes) == (0, ())
    assert files(work) == {"a.txt": "three\n"}
    await place.close()


async def test_a_kept_shell_and_folders_of_a_command_are_those_there(
    settings: SshSettings, work: Path, tmp_path: Path
) -> None:
    place = place_of(settings, tmp_path)
    (work / "sub").mkdir()
    (work / "sub/x").write_text("x")
    await done(place, work, "cd sub; export A=1")
    _, kept = await done(place, work, "pwd; echo $A", "b")
    _, named = await done(place, work, "pwd", "c", workdir=str(work))

    assert await place.directory("g") == f"{work}/sub"
    assert kept == f"{tmp_path}/machine{work}/sub\n1\n"
    assert named == f"{tmp_path}/machine{work}\n"
    await place.close()


async def test_what_a_background_command_made_comes_when_its_end_is_seen(
    settings: SshSettings, work: Path, tmp_path: Path
) -> None:
    place = place_of(settings, tmp_path)
    text = "until [ -e go ]; do sleep 0.05; done; echo made >b"
    running = await place.start("g/a", Command(text=text, folder=str(work), background=True))
    assert await running.poll() is None
    (work / "go").touch()
    await done(place, work, "true", "b")
    found = await place.attach("g/a")

    assert found is not None
    assert (await found.wait()).code == 0
    assert (work / "b").read_text() == "made\n"
    assert (found.command.folder, found.exec_id) == (str(work), "g/a")
    await place.close()


async def test_the_model_is_told_of_what_clashed(settings: SshSettings, work: Path, tmp_path: Path) -> None:
    place = place_of(settings, tmp_path)
    tools, _ = collect([ShellTools(place=place, settings=TerminalSettings())])
    bench = Bench(tools, work)
    await bench.answer("terminal", {"command": "true"})
    (tmp_path / f"machine{work}/a.txt").write_text("theirs\n")
    (work / "a.txt").write_text("mine\n")

    answer = await bench.answer("terminal", {"command": "cat a.txt"})

    assert answer.parts[0].text.startswith("mine\n[exit 0")
    assert answer.parts[0].text.endswith("ours was sent there, theirs is below .theirs/: a.txt.]")
    await place.close()


async def test_more_than_a_project_is_not_copied(settings: SshSettings, tmp_path: Path) -> None:
    place = place_of(settings, tmp_path)

    for folder in ("/", "/etc", str(Path.home())):
        with pytest.raises(PlaceFailed, match="too much to copy"):
            await place.start("g/a", Command(text="true", folder=folder))
    await place.close()


async def test_another_folder_there_deletes_nothing_here(settings: SshSettings, work: Path, tmp_path: Path) -> None:
    place = place_of(settings, tmp_path)
    before = files(work)
    await done(place, work, "true")
    await place.close()
    place = place_of(replace(settings, folder=str(tmp_path / "elsewhere")), tmp_path)
    ended, output = await done(place, work, "ls", "b")

    assert (output, ended.notes) == ("a.txt\n", ())
    assert files(work) == before
    await place.close()


async def test_a_folder_that_a_command_moved_away_or_made_anew_deletes_nothing_here(
    settings: SshSettings, work: Path, tmp_path: Path
) -> None:
    place = place_of(settings, tmp_path)
    before, there = files(work), tmp_path / f"machine{work}"
    for number, command in enumerate((f"mv {there} {there}.old", f"rm -rf {there}; mkdir {there}")):
        ended, _ = await done(place, work, f"(cd /; {command})", f"{number}")
        assert "there is gone, or another one than before the command" in ended.notes[0]
        assert files(work) == before
    ended, output = await done(place, work, "cat a.txt", "b")

    assert (output, ended.notes) == ("one\n", ())
    await place.close()


async def test_a_folder_there_that_leads_to_the_system_is_refused(
    settings: SshSettings, work: Path, tmp_path: Path
) -> None:
    place = place_of(settings, tmp_path)
    there = tmp_path / f"machine{work}"
    there.parent.mkdir(parents=True)
    there.symlink_to("/proc")  # where nothing could be written, were it not refused

    with pytest.raises(PlaceFailed, match=f"{there} there is too much to copy to: /proc"):
        await place.start("g/a", Command(text="true", folder=str(work)))
    await place.close()


@pytest.mark.parametrize(("answer", "left"), [("once", []), ("deny", ["a.txt"]), ("", ["a.txt"])])
async def test_whether_much_is_deleted_here_too_a_person_says(
    settings: SshSettings, work: Path, tmp_path: Path, answer: str, left: list[str]
) -> None:
    place = place_of(settings, tmp_path)
    tools, _ = collect(
        [ShellTools(place=place, settings=TerminalSettings()), CodeTools(place=place, settings=CodeSettings())]
    )
    bench = Bench(tools, work)
    context = bench.context(answers=[answer] if answer else [])

    told = await tools[0].run({"command": "rm a.txt"}, context)

    assert context.asked[0].text == (
        "The command deleted files elsewhere (1). May I delete them here too? `/rollback` puts back those that the "
        f"checkpoint before the command holds.\na.txt\nin {work}"
    )
    assert "[Gone there and kept here (1): a.txt.]" in told.parts[0].text
    assert list(files(work)) == left
    (work / "b").write_text("b")
    await bench.answer("execute_code", {"code": "import os; os.remove('b')"}, answers=["once"])
    assert list(files(work)) == left
    await place.close()


@pytest.mark.parametrize("rounds", [4, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
async def test_connections_that_break_and_folders_that_vanish_lose_no_file(
    settings: SshSettings, work: Path, tmp_path: Path, rounds: int
) -> None:
    """What the property does over a double, over a server: edits here, commands there, and something happens."""
    random, there, ours = Random(rounds), tmp_path / f"machine{work}", {"a.txt": "one\n"}
    place = place_of(settings, tmp_path)
    for number in range(rounds):
        for _ in range(5):
            name = f"{random.choice('abcd')}/{random.randrange(5)}"
            (work / name).parent.mkdir(exist_ok=True)
            ours[name] = f"here {number} {name}"
            (work / name).write_text(ours[name])
        made = f"out/{number}"
        fate = random.choice((f"rm -rf {there}", f"mv {there} {there}.{number}", "true", f"find {there} -delete"))
        running = asyncio.ensure_future(
            done(
                place,
                work,
                f"mkdir -p out; echo made >{made}; sleep 0.0{random.randrange(10)}; (cd /; {fate})",
                f"{number}",
            )
        )
        await asyncio.wait([running], timeout=random.choice((0.02, 0.05, 0.1, 5)))
        if not running.done():  # Hermes is gone
            running.cancel()
            await asyncio.wait([running])
            await place.close()
            place = place_of(settings, tmp_path)
        now = files(work)
        assert {name: now.get(name) for name in ours} == ours
        assert {text for name, text in now.items() if name not in ours} <= {"made\n"}
        ours = {name: text for name, text in now.items() if not name.startswith(".theirs")}
    ended, output = await done(place, work, "cat a.txt", "last")

    assert (ended.code, output) == (0, "one\n")
    await place.close()


async def test_files_that_cannot_come_back_are_told_with_the_end(
    settings: SshSettings, work: Path, tmp_path: Path
) -> None:
    place = place_of(replace(settings, max_files=3), tmp_path)
    ended, _ = await done(place, work, "touch 1 2 3 4 5; exit 4")

    assert ended.code == 4
    assert "What it changed was not copied here: There are more than 3 files" in ended.notes[0]
    await place.close()


async def test_without_it_nothing_is_copied(settings: SshSettings, work: Path, tmp_path: Path) -> None:
    place = place_of(replace(settings, sync=False, folder=""), tmp_path)
    ended, output = await done(place, work, "ls")

    assert output == "a.txt\n"  # this machine plays the other one
    assert ended.notes == ()
    assert not (tmp_path / "kept").exists()
    await place.close()


def test_a_folder_there_is_named_as_a_whole(settings: SshSettings, tmp_path: Path) -> None:
    with pytest.raises(PlaceFailed, match="absolute"):
        place_of(replace(settings, folder="work"), tmp_path)
