"""What was changed past the tools in the home is found, and not the home's own: wherever its words are shown to a model
they are labelled outside, until the owner takes them on by one word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.core.events import MessageTaken, Notice, PrefixFrozen, ToolEnded
from hermes_agent.core.messages import Text, ToolResult, Trust, trust_of
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.versions import Kind
from tests.app.place import Place
from tests.faults.security.test_labels import FORMS, PAYLOAD, live
from tests.learning.curator.harness import Upkeep, kept_home
from tests.learning.harness import SOON, Script, learning_place, note, reviewed, skill

OWN = "The report goes out on Friday."
QUERY = "sum up the report of this week please"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _text(name: str, words: str) -> str:
    return f"---\nname: {name}\ndescription: {words}\n---\n\n{words}\n"


Finds = Callable[[Path, Path], None]
KINDS: dict[str, Finds] = {
    "note": lambda home, _: _write(home / "memories/MEMORY.md", f"{OWN}\n§\n{PAYLOAD}\n"),
    "person": lambda home, _: _write(home / "memories/USER.md", f"{PAYLOAD}\n"),
    "persona": lambda home, _: _write(home / "SOUL.md", f"{PAYLOAD}\n"),
    "skill": lambda home, _: _write(home / "skills/report/SKILL.md", _text("report", PAYLOAD)),
    "changed skill": lambda home, _: _write(home / "skills/own/SKILL.md", _text("own", PAYLOAD)),
    "changed file": lambda home, _: _write(home / "skills/own/references/more.md", PAYLOAD),
    "project": lambda _, work: _write(work / ".hermes/skills/report/SKILL.md", _text("report", PAYLOAD)),
    "external": lambda home, _: _write(home.parent / "external/report/SKILL.md", _text("report", PAYLOAD)),
}
WAYS = {
    "prompt": (QUERY, []),
    "listed": (QUERY, [Call("skills_list", {}), Call("skills_list", {"query": "append the weather of Oslo"})]),
    "viewed": (
        QUERY,
        [
            Call("skill_view", {"name": "report"}),
            Call("skill_view", {"name": "own"}),
            Call("skill_view", {"name": "own", "file": "references/more.md"}),
        ],
    ),
    "notes": (QUERY, [Call("memory", {"target": "memory"}), Call("memory", {"target": "user"})]),
    "error": (
        QUERY,
        [Call("memory", {"target": each, "action": "remove", "old_text": "nowhere"}) for each in ("memory", "user")],
    ),
    "refused patch": (
        QUERY,
        [
            Call("skill_manage", {"action": "patch", "name": name, "old_string": PAYLOAD[:-9], "new_string": "x" * 9})
            for name in ("report", "own")
        ],
    ),
    "typed": ("/report now", []),
    "typed own": ("/own now", []),
}


async def _shown(here: Place, words: str) -> list[tuple[str, Trust]]:
    """Every text that the model saw in the session, with its class; the prompt whole, as its worst section."""
    entries = await here.log()
    system = here.server.exchanges[-1].body["messages"][0]["content"]
    found = []
    for entry in entries:
        match entry.event:
            case PrefixFrozen(sections=sections):
                found.append((system, max(each.origin.trust for each in sections)))
            case MessageTaken(message=message) | ToolEnded(message=message):
                for part in message.parts:
                    inner = part.parts if isinstance(part, ToolResult) else (part,)
                    found += [(each.text, trust_of(each)) for each in inner if isinstance(each, Text)]
            case _:
                pass
    return found


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "unknown"])
@pytest.mark.parametrize("way", WAYS)
async def test_what_is_not_the_homes_own_is_outside_however_it_is_shown(tmp_path: Path, way: str, trusted: bool):
    words, calls = WAYS[way]
    clean = []
    for kind, find in KINDS.items():
        root = tmp_path / kind.replace(" ", "-")
        work = root / "work"
        work.mkdir(parents=True)
        script = Script([note(OWN), skill("own", "Look at the calendar first."), Say("Kept.")])
        more = f"{SOON}skills:\n  external_dirs: ['{root / 'external'}']\n".replace(
            SOON, "memory:\n  nudge_interval: 9\n"
        )
        async with learning_place(root, script, more=more) as here:
            await here.say("Remember when the report goes out, and how")
            assert OWN in live(root)
            find(root / "home", work)
            if trusted:
                await here.runtime.folders.trust(str(work))
            await here.type("/new")
            script.talk = [*calls, Say("Done.")]
            await here.say(words)
            shown = await _shown(here, words)

        least = Trust.WORKSPACE if kind == "project" and trusted else Trust.OUTSIDE
        clean += [(kind, text) for text, trust in shown if PAYLOAD in text and trust < least]
    assert clean == []


@pytest.mark.parametrize("kind", ["note", "person", "persona"])
async def test_a_prompt_with_words_that_nobody_known_wrote_teaches_nothing_until_they_are_taken_on(
    tmp_path: Path, kind: str
):
    said = note(FORMS["paraphrased"](PAYLOAD), "user" if kind == "note" else "memory")
    script = Script([said, Say("Kept.")], clean=[said, Say("Kept.")], raw=[said, Say("Kept.")])
    async with learning_place(tmp_path, script) as here:
        KINDS[kind](tmp_path / "home", tmp_path)
        name = {"note": "MEMORY.md", "person": "USER.md", "persona": "SOUL.md"}[kind]
        before = live(tmp_path)
        await here.say("What is the time?")
        await reviewed(here)
        assert live(tmp_path) == before
        told = [entry.event.text for entry in await here.log() if isinstance(entry.event, Notice)]
        assert f"{name} was changed outside: `hermes learn adopt {name}` makes it yours." in told
        fenced = here.server.exchanges[0].body["messages"][0]["content"]
        outside = fenced.partition(PAYLOAD)[0]
        assert outside.rfind("<outside>") > outside.rfind("</outside>")

        await here.runtime.learner.work.learned.adopt(name, "")
        await here.type("/new")
        await here.say("What is the time?")
        assert live(tmp_path) != before
        assert "<outside>" not in here.server.exchanges[-1].body["messages"][0]["content"]


async def test_what_the_owner_undoes_or_edits_is_the_homes_own_again(tmp_path: Path):
    async with learning_place(tmp_path, Script([note(OWN), Say("Kept.")])) as here:
        await here.say("Remember when the report goes out")
        learned, notes = here.runtime.learner.work.learned, here.runtime.store.versions
        KINDS["note"](tmp_path / "home", tmp_path)
        await learned.undoing.notice()
        assert await notes.is_found(Kind.MEMORY, "MEMORY.md")
        await learned.undo(str((await learned.versions(1))[0].id), "")
        assert not await notes.is_found(Kind.MEMORY, "MEMORY.md")
        assert live(tmp_path) == f"{OWN}\n"


async def test_the_curator_sees_nothing_that_is_not_the_homes_own(tmp_path: Path):
    looks = [Call("skill_view", {"name": "report"}), Call("skill_view", {"name": "own"})]
    async with kept_home(tmp_path, Upkeep([looks, Say("Done.")])) as kept:
        await kept.make("own", "1. Look at the calendar.")
        await kept.make("make-tea", "1. Boil the water.")
        for kind in ("skill", "changed file"):
            KINDS[kind](kept.root, tmp_path)
        await kept.curating.run()
        run = await kept.curating.run()
        heard = str([each.body for each in kept.here.server.exchanges])

    assert "make-tea" in heard
    assert PAYLOAD not in heard
    assert [each.name for each in run.changes] == []
