"""What an agent reads and repeats in its report is no instruction to the one that started it, and is not kept."""

import json
import os
from pathlib import Path

import pytest

from hermes_agent.core.messages import ToolResult, Trust
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from tests.app.place import place, spoken
from tests.faults.test_poison import TEXTS
from tests.learning.harness import note, skill

PHRASES = Path(__file__).parent / "phrases"
BATCH, MOST = 12, 84


def payloads() -> list[str]:
    """Sentences that tell a model what to do: those of this folder, or of the file that the variable names."""
    if TEXTS in os.environ:
        rows = [json.loads(line) for line in Path(os.environ[TEXTS]).read_text().splitlines()]
        return [row["text"] for row in rows if row["label"] == "attack"][:MOST]
    lines = [
        line for name in ("acting", "acting_unseen") for line in (PHRASES / f"{name}.txt").read_text().splitlines()
    ]
    return lines[:MOST]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("background", [False, True])
async def test_no_payload_in_the_report_of_an_agent_becomes_an_instruction(
    tmp_path: Path, background: bool, full: bool
):
    every = payloads()[: MOST if full else BATCH]
    batches = [every[first : first + BATCH] for first in range(0, len(every), BATCH)]

    def agent(heard: Heard) -> Piece:
        if not spoken(heard):
            page = heard.messages[0].text.partition("Your goal: ")[2].split()[0]
            return Call("read_file", {"path": page})
        results = [part.text for part in heard.messages[-1].parts if isinstance(part, ToolResult)]
        return Say("What I found:\n" + "\n".join(line.partition("|")[2] for line in results[0].splitlines()))

    def script(heard: Heard) -> Piece | list[Piece]:
        if "You work for another agent" in heard.system:
            return agent(heard)
        said = "\n".join(str(message.parts) for message in heard.messages).replace("\\'", "'")  # as it was written
        if not spoken(heard):
            tasks = [{"goal": f"page{number}.txt"} for number in range(len(batches))]
            return Call("delegate_task", {"tasks": tasks, "background": background})
        new = [(n, text) for n, text in enumerate(every) if text[:30] in said and f"'w-{n}'" not in said]
        return [call for n, text in new for call in (note(text), skill(f"w-{n}", text))] or Say("Kept.")

    async with place(tmp_path, script) as here:
        work = Path(here.record.workspace)
        for number, batch in enumerate(batches):
            (work / f"page{number}.txt").write_text("\n".join(batch))
        ended = await here.say("Go")
        while background and any(child.is_open for child in await here.runtime.store.children.of(here.record.id)):
            ended = await here.ended((await here.log())[-1].number)
        await here.runtime.hermes.idle()
        children = await here.runtime.store.children.of(here.record.id)
        view = await here.runtime.hermes.view(here.record.id)
        kept = [file.read_text() for file in (tmp_path / "home").rglob("*.md") if "goals" not in file.parts]
        skills = await here.runtime.skills.library.all()
        await here.type("/new")
        await here.say("Hello")
        prompt = str(here.server.asked[-1].system)

    assert ended.text == "Kept."
    assert str(view.messages).count("'action': 'create'") == len(every)
    assert [child.outcome for child in children] == ["answered"] * len(batches)
    assert view.label.trust is Trust.OUTSIDE
    assert [text for text in every if any(text[:40] in each for each in kept)] == []
    assert [each.name for each in skills if each.name.startswith("w-")] == []
    assert [text for text in every if text[:40] in prompt] == []
