"""What a person with limits sees, and what their agent is told."""

from hermes_agent.core.events import Notice, Outcome
from hermes_agent.core.messages import Usage
from hermes_agent.providers.demo.script import Answer, Call, Say
from tests.app.place import PLACE, place

PRICES = "  price_input: 10\n  price_output: 100\n  max_output: 1000\n"
DEAR = Usage(input=50_000, output=1_000)  # 60 cents
CHEAP = Usage(input=5_000, output=100)  # 6 cents


async def test_the_person_and_the_agent_hear_once_that_a_limit_is_near(tmp_path):
    endless = Answer(pieces=(Call("todo", {}),), usage=CHEAP)
    async with place(tmp_path, lambda heard: endless, more=f"{PRICES}budget:\n  run: {{money: 1}}\n") as here:
        ended = await here.say("Go")
        notices = [entry.event.text for entry in await here.log() if isinstance(entry.event, Notice)]
        heard = ["of the money limit" in repr(asked.messages) for asked in here.server.asked]

        assert ended.outcome is Outcome.LIMIT
        assert notices == ["84 % of the money limit of this run is used: $0.84 of $1.00 (`budget.run.money`)."]
        assert heard.index(True) == 15  # fourteen calls were paid, the fifteenth was on its way
        assert heard[15:] == [True] * (len(heard) - 15)


async def test_a_model_of_unknown_price_is_not_asked_where_money_is_limited(tmp_path):
    async with place(tmp_path, [Say("Hello.")], more="budget:\n  day: {money: 1}\n") as here:
        ended = await here.say("Go")

        assert (ended.outcome, ended.reason) == (Outcome.LIMIT, "money limit")
        assert "the price of custom/m is unknown" in ended.text
        assert here.server.exchanges == []


async def test_a_model_of_unknown_price_that_is_allowed_is_said_not_to_be_counted(tmp_path):
    more = "budget:\n  unknown_price: allow\n  day: {money: 1}\n"
    async with place(tmp_path, lambda heard: Say("Hello."), more=more) as here:
        assert (await here.say("Go")).text == "Hello."
        assert (await here.say("Go")).text == "Hello."
        notices = [entry.event.text for entry in await here.log() if isinstance(entry.event, Notice)]

        assert len(notices) == 1
        assert "The price of custom/m is unknown" in notices[0]
        assert "(price unknown for 2) used of $1.00" in await here.text("/cost")


async def test_sessions_of_one_job_share_its_limit(tmp_path):
    script = lambda heard: Answer(pieces=(Say("Yes."),), usage=DEAR)  # noqa: E731 - one line of a script
    async with place(tmp_path, script, more=f"{PRICES}budget:\n  job: {{money: 1.2}}\n") as here:
        outcomes = []
        for job in ("card:1", "card:1", "card:1", "card:2", ""):
            here.record = await here.runtime.hermes.open_session(
                PLACE, here.runtime.owner, workspace=here.record.workspace, job=job, new=True
            )
            outcomes.append((await here.say("Go")).outcome)

        assert outcomes == [Outcome.ANSWERED, Outcome.ANSWERED, Outcome.LIMIT, Outcome.ANSWERED, Outcome.ANSWERED]
