"""What the session has used, and what the limits leave."""

import pytest

from hermes_agent.core.messages import Usage
from hermes_agent.core.spending import day_of
from hermes_agent.providers.demo.script import Answer, Say
from tests.app.place import counting, place

PRICED = """  price_input: 10
  price_output: 100
  max_output: 1000
budget:
  call: {tokens: 100000}
  run: {money: 5}
  day: {tokens: 1000000}
"""


@pytest.mark.parametrize("command", ["/cost", "/usage"])
async def test_nothing_and_an_unknown_price_are_said(tmp_path, command):
    async with place(tmp_path, counting) as here:
        assert await here.text(command) == "Nothing used yet."
        await here.say("Hi")
        text = await here.text(command)

        assert text.startswith("m: 1 model call, ")
        assert text.endswith("cost in US dollars: price unknown for 1.")


async def test_each_limit_of_the_session_is_shown_with_what_is_left(tmp_path):
    answer = Answer(pieces=(Say("Yes."),), usage=Usage(input=50_000, output=1_000, cached=25_000))
    async with place(tmp_path, lambda heard: answer, more=PRICED) as here:
        await here.say("Hi")
        await here.say("And?")
        lines = (await here.text("/cost")).splitlines()

        day = day_of(here.runtime.clock.now())
        assert lines == [
            "m: 2 model calls, 100,000 tokens in (50 % cached), 2,000 out, cost in US dollars: 1.2000.",
            "budget.call.tokens: 100,000 tokens each call.",
            f"budget.run.money: $0.60 used of $5.00, $0.00 reserved, $4.40 left ({await last_run(here)}).",
            "budget.day.tokens: 102,000 tokens used of 1,000,000 tokens, 0 tokens reserved, 898,000 tokens left "
            f"({day}).",
        ]


async def last_run(here) -> str:
    return (await here.runtime.store.usage.rows(here.record.id))[-1].run
