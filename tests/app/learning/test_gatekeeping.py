"""The gate in the foreground: a write that may not go live is put aside before it runs, with a kind of its own."""

from pathlib import Path

from hermes_agent.app.learning.work import PutAside
from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.learning.proposals import Why
from tests.learning.harness import Script, learning_place, note


async def test_a_write_after_a_strange_file_is_put_aside_and_one_before_it_is_live(tmp_path: Path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/page.txt").write_text("Pour the milk first.\n")
    talk = [note("Builds run at night."), Call("read_file", {"path": "page.txt"}), note("Milk goes first."), Say("Ok.")]
    async with learning_place(tmp_path, Script(talk)) as here:
        await here.say("Look around")
        (proposal,) = await here.runtime.store.proposals.waiting()
        view = await here.runtime.hermes.view(here.record.id)
        results = [part for message in view.messages for part in message.parts if isinstance(part, ToolResult)]
        await here.runtime.learner.work.learned.approve(proposal.name)

    assert (proposal.why, proposal.item) == (Why.OUTSIDE, "MEMORY.md")
    assert PutAside.kind in results[-1].text
    assert (tmp_path / "home/memories/MEMORY.md").read_text().split("\n") == [
        "Builds run at night.",
        "\u00a7",
        "Milk goes first.",
        "",
    ]
