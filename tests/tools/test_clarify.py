"""A question reaches the person, and the answer is the person's."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import BadArguments, Refused
from hermes_agent.core.messages import Origin
from hermes_agent.tools.clarify import ClarifyTools
from hermes_agent.tools.schema import collect
from tests.tools.bench import Bench, words

BENCH = Bench(collect([ClarifyTools()])[0], Path("/"))


async def test_the_answer_is_the_owners_words() -> None:
    context = BENCH.context(answers=["blue"])

    answer = await BENCH.tools["clarify"].run({"question": "Which?", "choices": ["red", "blue"]}, context)

    assert words(answer) == "blue"
    assert answer.parts[0].origin is Origin.OWNER
    assert (context.asked[0].text, context.asked[0].choices) == ("Which?", ("red", "blue"))
    assert BENCH.tools["clarify"].facts({"question": "?"}, "/").effect is Effect.ASKS


async def test_where_nobody_is_the_call_is_refused() -> None:
    with pytest.raises(Refused):
        await BENCH("clarify", question="Anybody?")


async def test_more_than_four_choices_are_too_many() -> None:
    with pytest.raises(BadArguments, match=r"\$\.choices"):
        await BENCH("clarify", question="?", choices=list("abcde"))
