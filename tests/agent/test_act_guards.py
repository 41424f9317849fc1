"""What a call is not allowed, and which files are in doubt after it."""

import asyncio

import pytest

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.events import Pinned
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.providers.demo.script import Answer as Said, Call, Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, Piece, tool


async def test_a_pin_refuses_what_changes_something_and_lets_reads_go(tmp_path):
    change = Piece("change", tool("change").body, Effect.WRITES, needs=frozenset({Capability.FS_WRITE}))
    look = tool("look", "blue")
    model = ScriptedModel([Said(pieces=(Call("change"), Call("look"))), Say("Done.")])
    async with Harness(tmp_path, model, (change, look)).open() as harness:
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(Pinned(pin="p1", text="Only read.", denies=(Capability.FS_WRITE,)))
        await harness.say("Go")

        assert (change.calls, look.calls) == ([], [{}])
        assert "Only read." in " ".join(await harness.transcript())


class Doubts:
    """Labels that note when what was in doubt."""

    def __init__(self) -> None:
        self.noted = 0

    async def is_trusted(self, paths, said="") -> bool:
        return True

    async def doubt(self, since: float, until: float) -> None:
        self.noted += 1


@pytest.mark.parametrize(
    ("origin", "over", "noted"), [(Origin.WEB, None, 1), (Origin.WORKSPACE, True, 1), (Origin.WEB, False, 2)]
)
async def test_files_are_in_doubt_where_a_call_that_may_change_them_read_the_outside(tmp_path, origin, over, noted):
    class Wanders(Piece):
        async def run(self, arguments, context):
            going_on = None if over is None else asyncio.create_task(asyncio.sleep(0, over))
            return Answer(parts=(Text(text="x", origin=origin),), over=going_on)

    doubts = Doubts()
    model = ScriptedModel([Call("run"), Say("Done.")])
    async with Harness(
        tmp_path, model, (Wanders("run", tool("run").body, Effect.WRITES),), labels=doubts
    ).open() as harness:
        await harness.say("Go")

    assert doubts.noted == noted
