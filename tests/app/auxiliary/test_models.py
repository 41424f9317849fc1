"""Who is asked for a purpose, seen from whole processes."""

import pytest

from hermes_agent.app.auxiliary.asking import Small, asked
from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.core.errors import EmptyReply, NoModel, TimedOut
from hermes_agent.core.messages import said
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.faults import Hang, Status
from tests.app.place import place

OWN = "auxiliary:\n  {purpose}:\n    model: custom/beside\n"


def naming(heard):
    return Say(f"\n I am {heard.model}. ")


async def ask(here, purpose, call_id="c1"):
    model = await here.runtime.auxiliary(purpose, here.record)
    small = Small(
        call_id=call_id, purpose="whatever", system="Be short.", message=said("Who?"), whose=(here.record.id, "", 0)
    )
    return await asked(model, small)


@pytest.mark.parametrize("purpose", Purpose)
async def test_the_model_of_the_settings_is_asked_and_its_row_names_the_purpose(tmp_path, purpose):
    async with place(tmp_path, naming, more=OWN.format(purpose=purpose)) as here:
        assert await ask(here, purpose) == "I am beside."

        (row,) = await here.runtime.store.usage.rows(here.record.id)
        assert (row.purpose, row.model, row.outcome, row.principal) == (purpose, "beside", "ok", here.record.principal)


async def test_without_one_the_model_of_the_session_is_asked(tmp_path):
    async with place(tmp_path, naming) as here:
        assert await ask(here, Purpose.REVIEW) == "I am m."

        await here.type("/model custom/other")
        here.record = await here.runtime.hermes.record(here.record.id)
        assert await ask(here, Purpose.REVIEW, "c2") == "I am other."


async def test_where_it_fails_the_model_that_answers_takes_its_place(tmp_path):
    def script(heard):
        return Status(400) if heard.model == "beside" else Say("Here I am.")

    async with place(tmp_path, script, more=OWN.format(purpose="curator")) as here:
        assert await ask(here, Purpose.CURATOR) == "Here I am."

        rows = await here.runtime.store.usage.rows(here.record.id)
        assert [(row.purpose, row.model) for row in rows] == [("curator", "beside"), ("curator", "m")]


async def test_where_it_cannot_even_be_asked_the_model_that_answers_is(tmp_path):
    async with place(tmp_path, naming, more="auxiliary:\n  web:\n    model: anthropic/claude-haiku-5-5\n") as here:
        assert await ask(here, Purpose.WEB) == "I am m."

        log = here.runtime.home.log_file.read_text()
        assert "anthropic/claude-haiku-5-5 cannot be asked, custom/m is asked instead" in log


async def test_it_may_be_asked_for_alone(tmp_path):
    async with place(tmp_path, naming, more="auxiliary:\n  web:\n    model: anthropic/claude-haiku-5-5\n") as here:
        with pytest.raises(NoModel):
            await here.runtime.auxiliary(Purpose.WEB, here.record, alone=True)


async def test_it_has_its_own_time(tmp_path):
    more = "auxiliary:\n  judge:\n    model: custom/beside\n    seconds: 1\n"
    async with place(tmp_path, [Hang()], more=more) as here:
        model = await here.runtime.auxiliary(Purpose.JUDGE, here.record, alone=True)
        small = Small(call_id="c1", purpose="judge", system="", message=said("Who?"), whose=("", "", 0), deadline=1e12)

        with pytest.raises(TimedOut):
            await asked(model, small)
        assert (model.name, model.window > 0) == ("custom/beside", True)


class Silent:
    """A model that breaks its contract."""

    name = "silent/one"
    window = 8_192

    async def ask(self, request):
        for nothing in ():
            yield nothing


async def test_a_stream_without_a_reply_is_an_empty_one():
    small = Small(call_id="c1", purpose="title", system="", message=said("Who?"), whose=("", "", 0))

    with pytest.raises(EmptyReply, match="without a reply"):
        await asked(Silent(), small)
