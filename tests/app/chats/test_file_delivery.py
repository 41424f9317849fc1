"""A file that a run has is handed over once, as a slot of the chat that its session is in."""

from pathlib import Path

import pytest

from hermes_agent.app.chats.file_delivery import FileDelivery
from hermes_agent.core.errors import ToolError
from hermes_agent.core.outbound import Attachment
from hermes_agent.providers.demo.script import Say
from tests.gateway.harness import harness


async def test_a_call_that_is_made_again_hands_nothing_over_twice(tmp_path: Path):
    (tmp_path / "plot.png").write_bytes(b"\x89PNG")
    async with harness(tmp_path, [Say("Hello.")]) as here:
        await here.ask("Hi")
        (record,) = await here.store.sessions.list()
        hand_over = FileDelivery(store=lambda: here.store)
        file = Attachment(path=str(tmp_path / "plot.png"), name="plot.png", media_type="image/png")
        for _ in range(2):
            await hand_over(record.id, "k:file", file)
        await here.shown(2)
        with pytest.raises(ToolError, match="no chat"):
            await hand_over("nobody", "k2:file", file)
        await here.rest()

        assert [each.file for each in here.platform.chats.of("1")] == ["", "plot.png"]
