"""Sessions: each person reaches their own, the owner all."""

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.sessions import (
    get_session,
    list_sessions,
    mail_at,
    new_prompt,
    read_log,
    search_messages,
    session_prompt,
    summarize_sessions,
)
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import UnknownSession
from tests.app.place import counting, place

ANNA = Principal(platform="api", user="anna", standing=Standing.MEMBER)


async def test_a_stranger_s_session_is_like_one_that_is_not_there(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("A word about herons")
        mine, theirs = (Access(system=here.runtime, who=who) for who in (here.runtime.owner, ANNA))

        assert (await get_session(mine, here.record.id)).id == here.record.id
        assert [each.id for each in await list_sessions(mine, 5)] == [here.record.id]
        assert await list_sessions(theirs, 5) == []
        assert await search_messages(mine, "herons", 5)
        assert await search_messages(theirs, "herons", 5) == []
        for name in (here.record.id, "20260101_000000_abcdef", "../../etc", ""):
            with pytest.raises(UnknownSession):
                await read_log(theirs, name)


async def test_mail_is_found_by_its_row(tmp_path):
    async with place(tmp_path, counting) as here:
        submitted = await here.runtime.hermes.submit(here.inbound("Hi"), here.record.id)
        await here.ended(0)

        assert (await mail_at(here.runtime, submitted.inbox)).session == here.record.id
        assert await mail_at(here.runtime, 999) is None


async def test_a_session_has_a_prompt_once_something_was_asked_in_it(tmp_path):
    async with place(tmp_path, counting) as here:
        owner = Access(system=here.runtime, who=here.runtime.owner, folder=here.record.workspace)
        with pytest.raises(UnknownSession, match="no prompt yet"):
            await session_prompt(owner, here.record.id)
        await here.say("Hi")
        frozen, (fresh, _) = await session_prompt(owner, here.record.id), await new_prompt(owner)

    assert [part.name for part in frozen] == [part.name for part in fresh]
    assert frozen[-1].name == "tools"


async def test_a_session_has_its_first_words_and_its_cost(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("A word\nabout herons")
        await here.say("and another")
        await here.type("/new")

        new, old = await summarize_sessions(Access(system=here.runtime, who=here.runtime.owner), 5)

    assert (old.words, old.calls, old.cost, old.price) == ("A word about herons", 2, None, "")
    assert (new.words, new.calls, new.price) == ("", 0, "")
