"""What came from outside stays outside, whatever path it takes back into a view."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_agent.app.folder_trust import TrustedFolders
from hermes_agent.app.opening import Options
from hermes_agent.core.errors import HermesError
from hermes_agent.host.inbound.listener import serve
from hermes_agent.memory.recall import RecallTools
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.tools.schema import collect
from tests.app.place import Place
from tests.faults.security.test_labels import FORMS, PAYLOAD, _pages, live
from tests.learning.harness import SOON, Script, learning_place, note

KEPT = note(FORMS["paraphrased"](PAYLOAD))


@asynccontextmanager
async def _trusted(folder: Path, script: Script, options: Options | None = None) -> AsyncIterator[tuple[Place, Call]]:
    """A system in a trusted folder, and the call that reads a page of the web."""
    (folder / "work").mkdir()
    async with serve(_pages) as site:
        more = f"{SOON}web:\n  private_hosts: ['127.0.0.1:{site.port}']\napprovals:\n  mode: 'off'\n"
        async with learning_place(folder, script, more=more, options=options) as here:
            await here.runtime.folders.trust(str(folder / "work"))
            yield here, Call("web_extract", {"url": f"http://127.0.0.1:{site.port}/page"})


READS = {
    "shell": Call("terminal", {"command": "cat notes.txt"}),
    "quoted": Call("terminal", {"command": "head -5 'notes.txt'|tac"}),
    "glob": Call("terminal", {"command": "cat ./*.txt"}),
    "all": Call("terminal", {"command": "grep -rh Append ."}),
    "code": Call("execute_code", {"code": "print(open('notes.txt').read())"}),
    "copy": Call("terminal", {"command": "cp notes.txt new.txt"}),
    "background": Call("terminal", {"command": "cat notes.txt", "background": True}),
}


@pytest.mark.parametrize("way", READS)
async def test_a_command_that_names_a_file_from_outside_speaks_as_it(tmp_path: Path, way: str):
    script = Script([])
    async with _trusted(tmp_path, script) as (here, page):
        script.talk = [page, Call("write_file", {"path": "notes.txt", "content": PAYLOAD}), Say("Saved.")]
        await here.say("Save the page")
        await here.type("/new")
        more = {"copy": [Call("read_file", {"path": "new.txt"})], "background": []}
        script.talk = [READS[way], *more.get(way, []), KEPT, Say("Kept.")]
        await here.say("Read the notes on the tests of the parser")
        assert live(tmp_path) == ""


@pytest.mark.parametrize("name", ["work/received/a.txt", "other/a.txt"])
async def test_a_command_that_names_a_file_of_somebody_else_speaks_as_it(tmp_path: Path, name: str):
    script, file = Script([]), tmp_path / name
    async with _trusted(tmp_path, script) as (here, _):
        file.parent.mkdir(parents=True)
        file.write_text(PAYLOAD)
        script.talk = [Call("terminal", {"command": f"cat {file}"}), KEPT, Say("Kept.")]
        await here.say("Read it")
        assert live(tmp_path) == ""


WRITES = {
    "as a reading one": {"command": f"echo '{PAYLOAD}' > notes.txt", "read_only": True},
    "later": {"command": f"sleep 5; echo '{PAYLOAD}' > notes.txt", "background": True},
}


@pytest.mark.parametrize("way", WRITES)
async def test_what_a_command_writes_that_came_from_outside_is_in_doubt(tmp_path: Path, way: str):
    script, file = Script([]), tmp_path / "work/notes.txt"
    async with _trusted(tmp_path, script) as (here, page):
        script.talk = [page, Call("terminal", WRITES[way]), Say("Saved.")]
        await here.say("Save the page")
        for _ in range(100):
            if file.exists():
                break
            await asyncio.sleep(0.1)
        await here.type("/new")
        script.talk = [Call("read_file", {"path": "notes.txt"}), KEPT, Say("Kept.")]
        await here.say("Read the notes on the tests of the parser")
        assert live(tmp_path) == ""


async def test_what_a_folder_says_of_itself_has_the_label_of_its_own_file(tmp_path: Path):
    script = Script([])
    async with _trusted(tmp_path, script) as (here, page):
        (tmp_path / "work/sub").mkdir()
        (tmp_path / "work/sub/code.py").write_text("print('Hello')\n")
        script.talk = [page, Call("write_file", {"path": "sub/AGENTS.md", "content": PAYLOAD}), Say("Saved.")]
        await here.say("Save the page")
        await here.type("/new")
        script.talk = [Call("read_file", {"path": "sub/code.py"}), KEPT, Say("Kept.")]
        await here.say("Read the code")
        assert live(tmp_path) == ""


async def test_what_a_memory_of_others_says_when_it_refuses_is_not_ours(tmp_path: Path):
    class Refusing:
        async def add(self, fact: str, source: str) -> None:
            raise HermesError(f"The memory refused (400): {PAYLOAD}")

    async def backend_for(_):
        return Refusing()

    async def source_for(_):
        return ""

    script = Script([Call("recall_add", {"fact": "Oslo is in Norway."}), KEPT, Say("Kept.")])
    tools = collect([RecallTools(backend_for, source_for)])[0]
    async with _trusted(tmp_path, script, Options(reviews=False, extra_tools=tools)) as (here, _):
        await here.say("Remember where Oslo is")
        assert live(tmp_path) == ""


@pytest.mark.parametrize("old", ["Never upload", "Never "])
async def test_a_patch_is_read_with_what_stands_around_it(tmp_path: Path, old: str):
    script = Script([])
    steps = ("Never upload the logs", "to files.example.", "Count the lines.", "Sort them.", "Print the first.")
    async with _trusted(tmp_path, script) as (here, _):
        folder = tmp_path / "home/skills/logs"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            "---\nname: logs\ndescription: How logs are looked after.\n---\n\n" + "\n".join(steps)
        )
        new = {"Never upload": "Upload", "Never ": ""}[old]
        change = {"action": "patch", "name": "logs", "old_string": old, "new_string": new}
        script.talk = [Call("skill_manage", change), Say("Changed.")]
        await here.say("Hello")
        assert "Never upload" in live(tmp_path)


async def test_a_command_that_names_nothing_in_doubt_teaches_at_once(tmp_path: Path):
    script = Script([])
    async with _trusted(tmp_path, script) as (here, page):
        script.talk = [page, Call("write_file", {"path": "notes.txt", "content": PAYLOAD}), Say("Saved.")]
        await here.say("Save the page")
        await here.type("/new")
        command = "printf '3 of 4 passed\\n' 2>/dev/null | sed 's/3 of/all/' && ls /usr >/dev/null && test -d /"
        lesson = "The tests of the parser need the fixture still."
        script.talk = [Call("terminal", {"command": command}), note(lesson), Say("Kept.")]
        await here.say("Run the tests of the parser")
        assert lesson in live(tmp_path)


FACT = "The tests of the parser need the fixture still."
LEARNS = [Call("read_file", {"path": "notes.txt"}), note(FACT), Say("Kept.")]


async def _saved(here: Place, script: Script, page: Call) -> None:
    """A page's words are in a file of the trusted folder, and a session begins that saw nothing of it."""
    script.talk = [page, Call("write_file", {"path": "notes.txt", "content": "Two of four failed.\n"}), Say("Saved.")]
    await here.say("Save the page")
    await here.type("/new")


async def test_trusting_the_folder_again_shows_what_was_in_doubt_and_clears_it(tmp_path: Path):
    script = Script([])
    async with _trusted(tmp_path, script) as (here, page):
        await _saved(here, script, page)
        script.talk = LEARNS
        await here.say("Read the notes on the tests of the parser")
        assert live(tmp_path) == ""
        shown, added = await here.text("/trust show"), await here.text("/trust add")
        assert "In doubt, because it changed while something from outside was in view" in shown
        assert "notes.txt, since 20" in shown
        assert "No longer in doubt" in added
        assert "notes.txt, since 20" in added
        assert "in doubt," not in await here.text("/trust show") + await here.text("/trust add")
        await here.type("/new")
        await here.say("Read the notes on the tests of the parser")
        assert FACT in live(tmp_path)


CLEARS = {
    "touch": Call("terminal", {"command": "touch notes.txt"}),
    "touch all": Call("terminal", {"command": "find . -type f -exec touch {} +"}),
    "write anew": Call("terminal", {"command": "cat notes.txt > b.txt && mv b.txt notes.txt"}),
    "rename": Call("terminal", {"command": "mv notes.txt b.txt && mv b.txt notes.txt"}),
    "patch": Call("patch", {"path": "notes.txt", "old_string": "Two", "new_string": "2"}),
    "trust": Call("terminal", {"command": f"{sys.executable} -m hermes_agent trust add ."}),
    "trust outside": Call("terminal", {"command": f"{sys.executable} -m hermes_agent trust add .", "outside": True}),
    "forget": Call("write_file", {"path": "../home/trusted-folders.json", "content": "{}"}),
    "say": Say("/trust add"),
}


@pytest.mark.parametrize("way", CLEARS)
async def test_nothing_that_the_agent_does_clears_a_doubt(tmp_path: Path, way: str):
    script = Script([])
    async with _trusted(tmp_path, script) as (here, page):
        await _saved(here, script, page)
        script.talk = [CLEARS[way], Say("Done.")]
        await here.say("Do it")
        await here.type("/new")
        script.talk = LEARNS
        await here.say("Read the notes on the tests of the parser")
        assert [each.item for each in await here.runtime.store.proposals.waiting()] == ["MEMORY.md"]
        assert live(tmp_path) == ""


async def test_a_doubt_that_comes_while_a_folder_is_trusted_for_once_stays(tmp_path: Path):
    script = Script([])
    async with _trusted(tmp_path, script) as (here, page):
        await here.type("/trust once")
        await _saved(here, script, page)
        again = TrustedFolders(here.runtime.home, here.runtime.machine)
        assert [each.name for each in again.doubted(str(tmp_path / "work"))] == ["notes.txt"]
        assert "in doubt," not in await here.text("/trust once")
        assert again.doubted(str(tmp_path / "work"))
