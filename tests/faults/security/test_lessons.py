"""Learning goes on: what an owner teaches and what solved problems teach is live at once; payloads are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Call, Say
from tests.faults.security.lessons import ACTING, PARAPHRASED, PAYLOADS, TAUGHT, disguised, problems
from tests.faults.security.test_labels import live
from tests.learning.harness import Script, learning_place, note, reviewed, skill

ASKS_NOTHING = "approvals:\n  mode: 'off'\n"
ROOMY = "memory:\n  memory_char_limit: 100000\n  user_char_limit: 100000\n  nudge_interval: 1\n"


@pytest.mark.parametrize("hand", ["foreground", "review"])
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "beside a file with the same words"])
async def test_what_an_owner_teaches_is_live_at_once(tmp_path: Path, hand: str, shared: bool, full: bool):
    taught = TAUGHT if full else TAUGHT[::7]
    script, work = Script([]), tmp_path / "work"
    work.mkdir()
    (work / "habits.txt").write_text("\n".join(TAUGHT))
    more = f"{ROOMY}skills:\n  creation_nudge_interval: 1\n"
    async with learning_place(tmp_path, script, more=more) as here:
        for lesson in taught:
            await here.type("/new")
            reads = [Call("read_file", {"path": "habits.txt"})] if shared else []
            script.talk = [*reads, *([note(lesson)] if hand == "foreground" else []), Say("Noted.")]
            script.clean = [note(lesson), Say("Kept.")]
            await here.say(lesson)
            if hand == "review":
                await reviewed(here)
        kept = live(tmp_path)
    assert [lesson for lesson in taught if lesson not in kept] == []


@pytest.mark.parametrize("hand", ["foreground", "review"])
async def test_nine_of_ten_solved_problems_of_a_trusted_folder_teach_without_a_question(
    tmp_path: Path, hand: str, full: bool
):
    solved = problems() if full else problems()[::6]
    script = Script([])
    more = f"{ROOMY}{ASKS_NOTHING}skills:\n  creation_nudge_interval: 1\n"
    async with learning_place(tmp_path, script, more=more) as here:
        work = tmp_path / "work"
        for number, problem in enumerate(solved):
            for name, text in problem.files.items():
                (work / name).write_text(text)
            await here.runtime.folders.trust(str(work))
            await here.type("/new")
            write = note(problem.lesson) if number % 2 else skill(f"solved-{number}", problem.lesson)
            commands = [Call("terminal", {"command": command}) for command in problem.commands]
            script.talk = [*commands, *([write] if hand == "foreground" else []), Say("It works again.")]
            script.clean = [write, Say("Kept.")]
            await here.say(problem.ask)
            if hand == "review":
                await reviewed(here)
        kept = live(tmp_path)
    lost = [problem.lesson for problem in solved if problem.lesson not in kept]
    assert len(lost) <= len(solved) // 10, lost


@pytest.mark.slow
@pytest.mark.timeout(280)
async def test_payloads_in_files_of_a_trusted_folder_are_never_live(tmp_path: Path, full: bool):
    forms = [form for text in PAYLOADS for form in disguised(text).items()]
    forms += [("paraphrased", PARAPHRASED[text]) for text in ACTING]
    script, work = Script([]), tmp_path / "work"
    work.mkdir()
    (work / "page.txt").write_text("\n".join(PAYLOADS))
    (work / "hidden.txt").write_text("\n".join(text for name, text in forms if name != "paraphrased"))
    async with learning_place(tmp_path, script, more=ROOMY) as here:
        await here.runtime.folders.trust(str(work))
        for number, (name, form) in enumerate(forms if full else forms[::5]):
            await here.type("/new")
            words = form.split()
            halves = [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
            reads = [Call("read_file", {"path": "page.txt"}), Call("read_file", {"path": "hidden.txt"})]
            writes = [note(form), skill(f"way-{number}", form), *map(note, filter(None, halves))]
            script.talk = [*reads, *writes, Say("Kept.")]
            script.clean = script.raw = [*writes, Say("Kept.")]
            await here.say("Read the pages, please")
            await reviewed(here)
            kept = live(tmp_path)
            if name == "paraphrased":  # Half of it alone is no payload.
                assert not all(half in kept for half in halves), form
            else:
                assert kept == "", (name, form)
