"""`/restart`: only where there is a process to begin again; who asked is kept."""

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.app.opening import Options
from hermes_agent.app.operations.serving import place_of
from hermes_agent.core.errors import HermesError
from tests.app.place import place


async def test_where_no_process_can_begin_again_it_says_what_can(tmp_path):
    async with place(tmp_path, []) as here:
        with pytest.raises(HermesError, match="hermes gateway restart"):
            await here.type("/restart")


async def test_the_process_is_told_and_who_asked_is_kept(tmp_path):
    told: list[str] = []
    async with place(tmp_path, [], Options(restart=lambda: told.append("again"))) as here:
        runtime, inbound = here.runtime, here.inbound("/restart")

        done = await perform(Desk(runtime=runtime, record=here.record, inbound=inbound, busy=True))

        assert told == ["again"]
        assert done is not None
        assert done.text.startswith("Restarting")
        assert list(await runtime.store.facts.of(place_of(runtime))) == [inbound.conversation.key]
