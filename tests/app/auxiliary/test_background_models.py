"""What auxiliary models do in the runs of a process: here the summaries; titles and the judge have their own tests."""

from hermes_agent.core.events import Compacted
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.faults import Status
from tests.app.place import place

OWN = "auxiliary:\n  {purpose}:\n    model: custom/beside\n"


def talkative(heard):
    if heard.model == "beside":
        return Say("## Task\nTalk.")
    return Say("## Task\nMine.") if "You keep the record" in heard.system else Say("indeed " * 400)


async def summed_up(here):
    """Talk until the conversation was summed up; who wrote that, and the purposes and models of the calls for it."""
    for _ in range(10):
        await here.say("Tell me more. " + "Go on. " * 100)
    made = [entry.event for entry in await here.log() if isinstance(entry.event, Compacted)]
    rows = await here.runtime.store.usage.rows(here.record.id)
    return {event.writer for event in made}, {(row.purpose, row.model) for row in rows if row.purpose != "chat"}


async def test_summaries_are_written_by_the_model_that_is_named_for_them(tmp_path):
    more = "  window: 8192\n" + OWN.format(purpose="compression")
    async with place(tmp_path, talkative, more=more) as here:
        assert await summed_up(here) == ({"custom/beside"}, {("compression", "beside")})


async def test_where_it_fails_the_model_that_answers_writes_them(tmp_path):
    def script(heard):
        return Status(400) if heard.model == "beside" else talkative(heard)

    more = "  window: 8192\n" + OWN.format(purpose="compression")
    async with place(tmp_path, script, more=more) as here:
        assert await summed_up(here) == ({"custom/m"}, {("compression", "beside"), ("compression", "m")})


async def test_where_it_cannot_be_asked_the_model_that_answers_writes_them(tmp_path):
    more = "  window: 8192\nauxiliary:\n  compression:\n    model: anthropic/claude-haiku-4-5\n"
    async with place(tmp_path, talkative, more=more) as here:
        assert await summed_up(here) == ({"custom/m"}, {("compression", "m")})


async def test_a_purpose_without_money_is_not_asked_and_the_run_goes_on(tmp_path):
    more = "  window: 8192\n  price_input: 1\n  price_output: 1\nauxiliary:\n  compression:\n    money: 0\n"
    async with place(tmp_path, talkative, more=more) as here:
        assert await summed_up(here) == ({""}, set())  # the conversation was cut down without a model
        assert not [entry for entry in await here.log() if entry.event.kind == "notice" and "limit" in entry.event.text]
