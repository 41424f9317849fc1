"""Deleted messages in recordings: what they did then they do again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.random_session import differences
from hermes_agent.core.chat import Busy, Inbound
from hermes_agent.core.events import MessageTaken, Notice, Outcome, RunEnded, Undone
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from tests.app.place import Place
from tests.app.replay.recorded import recorded, replayed

SLOW = Answer(pieces=(Say("word " * 400),), pace=Pace(between=0.01))


async def delete(here: Place, inbound: Inbound) -> None:
    back = replace(inbound, source_id=f"{inbound.source_id}:deleted", parts=(), withdraws=inbound.source_id)
    assert await here.runtime.hermes.withdraw(back) == [here.record.id]


async def test_a_run_whose_message_was_deleted_is_played_too(tmp_path: Path):
    async with recorded(tmp_path, [SLOW]) as here:
        said = here.inbound("Talk.")
        after = await here.tell(said)
        await here.until(MessageTaken, after)
        await delete(here, said)
        ended = await here.ended(after)
        assert (ended.outcome, ended.text) == (Outcome.STOPPED, "")
        then = await here.log()
        assert any(isinstance(each.event, Undone) for each in then)

    again = await replayed(tmp_path)

    assert list(again.entries) == then
    assert differences(tmp_path) == []


async def test_a_message_that_was_deleted_while_it_waited_is_played_too(tmp_path: Path):
    async with recorded(tmp_path, lambda heard: SLOW if heard.turn == 0 else Say("Never.")) as here:
        after = await here.tell("Talk.")
        await here.until(MessageTaken, after)
        said = here.inbound("Wait.", busy=Busy.QUEUE)
        await here.tell(said)
        await delete(here, said)
        first = await here.until(RunEnded, after)
        second = await here.until(RunEnded, first.number)
        assert (second.event.outcome, second.event.text) == (Outcome.STOPPED, "")
        then = await here.log()
        assert any(isinstance(each.event, Notice) and "before it was read" in each.event.text for each in then)

    await replayed(tmp_path)

    assert differences(tmp_path) == []


async def test_a_run_that_was_told_of_a_deletion_is_played_too(tmp_path: Path):
    def script(heard: Heard) -> Answer | list[Call] | Say:
        if heard.turn < 2:
            call = Call("search_files", {"pattern": f"x{heard.turn}"})
            return Answer(pieces=(Say("word " * 400), call), pace=Pace(between=0.01))
        return Say("Both.")

    async with recorded(tmp_path, script) as here:
        first, second = here.inbound("One."), here.inbound("Two.")
        after = await here.tell(first)
        await here.until(MessageTaken, after)
        number = await here.tell(second)
        await here.until(MessageTaken, number)
        await delete(here, first)
        assert (await here.ended(after)).text == "Both."

    await replayed(tmp_path)

    assert differences(tmp_path) == []
