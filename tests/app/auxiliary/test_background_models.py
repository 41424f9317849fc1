"""Who is asked for a purpose, and what auxiliary models do in runs: titles and the judge have their own tests."""

import pytest

from hermes_agent.agent.session import Session
from hermes_agent.app.auxiliary.asking import Small, asked
from hermes_agent.app.auxiliary.background_models import OfRun
from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.core.errors import EmptyReply, NoModel, TimedOut
from hermes_agent.core.events import Compacted
from hermes_agent.core.messages import said
from hermes_agent.providers.demo.script import Say
from hermes_agent.replay.seam import Seam
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.testing.faults import Hang, Status
from hermes_agent.testing.scripted import ScriptedModel
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


def naming(heard):
    return Say(f"\n I am {heard.model}. ")


async def ask(here, purpose, call_id="c1"):
    model = await here.runtime.snapshots.now.background.model(purpose, here.record)
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
            await here.runtime.snapshots.now.background.model(Purpose.WEB, here.record, alone=True)


async def test_it_has_its_own_time(tmp_path):
    more = "auxiliary:\n  judge:\n    model: custom/beside\n    seconds: 1\n"
    async with place(tmp_path, [Hang()], more=more) as here:
        model = await here.runtime.snapshots.now.background.model(Purpose.JUDGE, here.record, alone=True)
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


class Listening(ScriptedModel):
    def __init__(self, *steps):
        super().__init__(steps)
        self.asked = []

    def ask(self, request):
        self.asked.append(request)
        return super().ask(request)

    async def through(self, *_, **__):
        return self


class OneLedger:
    def by(self, clock):
        return self


async def test_a_question_to_the_judge_belongs_to_the_run_and_has_its_deadline():
    judge, view = Listening(Say(" APPROVE\n")), Session(id="s", run="r", turn=3)
    record = SessionRecord(
        id="s", principal="cli:me", conversation="", surface="cli", created=0.0, updated=0.0, workspace="/"
    )
    seam = Seam(SystemClock(), RandomIds())
    run = OfRun(models=judge, record=record, ledger=OneLedger(), seam=seam, view=view, deadline=12.0)

    assert await run.judge("May `rm -rf build` run?") == "APPROVE"
    (request,) = judge.asked
    assert (request.session, request.run, request.turn, request.purpose) == ("s", "r", 3, "judge")
    assert request.deadline == 12
    assert request.messages[0].text == "May `rm -rf build` run?"
    assert not request.prefix.tools
