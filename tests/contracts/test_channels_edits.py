"""The contract of channels about changed messages, over every channel that hears of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from hermes_agent.gateway.channel import Said
from tests.contracts.channels import CASES, Ear


@pytest.mark.parametrize("name", sorted(CASES))
async def test_each_change_has_a_stamp_of_its_own_also_back_to_an_earlier_text(name: str, tmp_path: Path) -> None:
    async with CASES[name].stage(tmp_path) as stage:
        if not stage.kind.abilities.hears_edits:
            pytest.skip("the platform tells of no edits")
        ear = Ear()
        listening = asyncio.create_task(stage.channel.listen(ear))
        source_id = await stage.double.say("pay 1", chat=stage.chat, user=stage.person)
        await ear.until(lambda: len(ear.heard) == 1)
        for number, text in enumerate(("pay 100", "pay 10", "pay 100"), start=2):
            await stage.double.change(text)
            await ear.until(lambda count=number: len(ear.heard) == count)
        await stage.double.again()
        await ear.until(lambda: len(ear.heard) == 5)
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        await stage.channel.close()

    changes = [said for said in ear.heard[1:] if isinstance(said, Said)]
    assert {said.source_id for said in changes} == {source_id}
    assert [said.text for said in changes] == ["pay 100", "pay 10", "pay 100", "pay 100"]
    assert all(said.edited for said in changes)
    assert len({said.edited for said in changes}) == 3
    assert changes[2].edited == changes[3].edited
