"""Visits: each person reaches their own sessions, the owner all."""

import pytest

from hermes_agent.app.session_access import MOST_FAILURES, SessionAccess, retried
from hermes_agent.core.errors import DiskFull, UnknownSession
from hermes_agent.core.inbound import Principal, Standing
from tests.app.place import counting, place

ANNA = Principal(platform="api", user="anna", standing=Standing.MEMBER)


async def test_a_stranger_s_session_is_like_one_that_is_not_there(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("A word about herons")
        mine, theirs = (SessionAccess(runtime=here.runtime, who=who) for who in (here.runtime.owner, ANNA))

        assert (await mine.session(here.record.id)).id == here.record.id
        assert [each.id for each in await mine.sessions(5)] == [here.record.id]
        assert await theirs.sessions(5) == []
        assert await mine.search("herons", 5)
        assert await theirs.search("herons", 5) == []
        for name in (here.record.id, "20260101_000000_abcdef", "../../etc", ""):
            with pytest.raises(UnknownSession):
                await theirs.entries(name)


async def test_mail_is_found_by_its_row(tmp_path):
    async with place(tmp_path, counting) as here:
        submitted = await here.runtime.hermes.submit(here.inbound("Hi"), here.record.id)
        await here.ended(0)
        visit = SessionAccess(runtime=here.runtime, who=ANNA)

        assert (await visit.mail(submitted.inbox)).session == here.record.id
        assert await visit.mail(999) is None


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
