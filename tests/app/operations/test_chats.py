"""The outbox: once, waited for, and by the owner alone."""

import pytest

from hermes_agent.app.operations.access import Access, open_offline
from hermes_agent.app.operations.chats import MOST_FAILURES, approve_pairing, post_once, retried, send, tally
from hermes_agent.app.settings import Settings
from hermes_agent.core.chat import Content, Conversation, Letter, Principal, SlotState, Standing
from hermes_agent.core.errors import DiskFull, HermesError
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from tests.app.place import counting, place

LETTER = Letter(key="k", to=Conversation(platform="telegram", chat="7"), content=Content(text="Hello"))


async def test_a_message_is_posted_once_and_waits_where_nobody_delivers_it(tmp_path):
    async with place(tmp_path, counting) as here:
        owner = Access(system=here.runtime, who=here.runtime.owner)
        assert [await post_once(here.runtime, LETTER) for _ in range(2)] == [True, False]
        slot = await send(owner, LETTER, 0.0)
        assert slot is not None
        assert (slot.state, await tally(owner)) == (SlotState.PENDING, {"pending": 1})
        with pytest.raises(HermesError, match="Only the owner"):
            await send(
                Access(system=here.runtime, who=Principal(platform="api", user="a", standing=Standing.MEMBER)),
                LETTER,
                0.0,
            )


async def test_what_the_store_never_takes_is_given_up():
    tries = []

    async def work():
        tries.append(1)
        raise DiskFull("No room left.")

    class Clock:
        async def sleep(self, seconds: float) -> None:
            """No time passes."""

    with pytest.raises(DiskFull):
        await retried(work, Clock())
    assert len(tries) == MOST_FAILURES


async def test_a_code_makes_an_owner_where_it_is_said(tmp_path):
    home = Home(root=tmp_path, base=tmp_path).ensure()
    home.config_file.write_text("gateway:\n  channels:\n    telegram:\n      owners: ['1']\n")
    async with open_offline(home, load(home, Settings)) as access:
        pairing = access.system.store.pairing
        member = await approve_pairing(access, await pairing.ask("discord", "7", "Ann"))
        owner = await approve_pairing(access, await pairing.ask("telegram", "7", "Ann"), owner=True)

    assert member.startswith("Ann (discord:7) is admitted. discord has no owner yet: `hermes config set gateway.")
    assert owner == "Ann (telegram:7) is admitted, and an owner."
    assert load(home, Settings).value.gateway.channels["telegram"].owners == ("1", "7")
