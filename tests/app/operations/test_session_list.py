"""Sessions as a person recognises them."""

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.session_list import summarize_sessions
from tests.app.place import counting, place


async def test_a_session_has_its_first_words_and_its_cost(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("A word\nabout herons")
        await here.say("and another")
        await here.type("/new")

        new, old = await summarize_sessions(Access(system=here.runtime, who=here.runtime.owner), 5)

    assert (old.words, old.calls, old.cost, old.price) == ("A word about herons", 2, None, "")
    assert (new.words, new.calls, new.price) == ("", 0, "")
