"""Who asked for a restart is told once that it is done."""

from hermes_agent.app.restart_notice import note_asker, report_back
from tests.app.place import place


async def test_who_asked_is_told_once(tmp_path):
    async with place(tmp_path, []) as here:
        await note_asker(here.runtime, here.inbound("/restart"))

        await report_back(here.runtime)
        await report_back(here.runtime)

        (slot,) = await here.runtime.store.outbox.claim(("cli",))
        assert slot.content.text.startswith("I am back: Hermes ")
        assert slot.to == here.inbound("x").conversation


async def test_where_nobody_asked_nothing_is_said(tmp_path):
    async with place(tmp_path, []) as here:
        await report_back(here.runtime)

        assert not await here.runtime.store.outbox.claim(("cli",))
