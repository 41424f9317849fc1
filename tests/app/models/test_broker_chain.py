"""Mixtures in whole processes; single models and their fallbacks are tested beside the chains."""

import pytest

from bench.random_session import differences
from hermes_agent.app.opening import Options
from hermes_agent.core.events import Notice, Outcome
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Status
from tests.app.place import place
from tests.app.replay.recorded import recorded, replayed

MOA = "moa:\n  council:\n    members: [custom/red, custom/blue]\n    aggregator: custom/all\n"
COUNCIL = Options(model="moa/council")


def council(heard):
    """Two that know something, and one that works and answers."""
    if heard.model in ("red", "blue"):
        return Say(f"I say {heard.model}.")
    opinions = " and ".join(each for each in ("red", "blue") if f"I say {each}." in str(heard.messages))
    return Call("todo", {"todos": []}) if heard.turn == 0 else Say(f"I heard {opinions or 'nobody'}.")


async def rows_of(here):
    return await here.runtime.store.usage.rows(here.record.id)


async def notices(here):
    return [entry.event.text for entry in await here.log() if isinstance(entry.event, Notice)]


async def test_a_mixture_answers_with_tools_and_each_call_has_its_row(tmp_path):
    async with place(tmp_path, council, COUNCIL, more=MOA) as here:
        ended = await here.say("Who wins?")

        assert ended.text == "I heard red and blue."
        rows = await rows_of(here)
        assert sorted((row.purpose, row.model) for row in rows) == [
            ("chat", "all"),
            ("chat", "all"),
            ("mixture", "blue"),
            ("mixture", "red"),
        ]
        assert len({row.run for row in rows}) == 1
        view = await here.runtime.hermes.view(here.record.id)
        assert "I say" not in str(view.messages)


async def test_a_member_that_fails_is_told(tmp_path):
    def script(heard):
        return Status(400) if heard.model == "red" else council(heard)

    async with place(tmp_path, script, COUNCIL, more=MOA) as here:
        assert (await here.say("Who wins?")).text == "I heard blue."
        assert any(text.startswith("custom/red had no opinion:") for text in await notices(here))


async def test_a_member_without_a_key_is_told(tmp_path):
    more = MOA.replace("custom/red", "anthropic/claude-haiku-4-5")
    async with place(tmp_path, council, COUNCIL, more=more) as here:
        assert (await here.say("Who wins?")).text == "I heard blue."
        assert any(text.startswith("anthropic/claude-haiku-4-5 had no opinion:") for text in await notices(here))


async def test_a_limit_holds_for_all_of_them_together(tmp_path):
    more = f"  price_input: 1000\n  price_output: 1000\n{MOA}budget:\n  run:\n    money: 0.01\n"
    async with place(tmp_path, council, COUNCIL, more=more) as here:
        ended = await here.say("Who wins?")

        assert ended.outcome is Outcome.LIMIT
        assert here.server.exchanges == []


async def test_a_replay_of_a_mixture_leaves_the_same_rows(tmp_path):
    async with recorded(tmp_path, council, more=MOA, model="moa/council") as here:
        await here.say("Who wins?")
        then = await here.log()
    again = await replayed(tmp_path)

    assert list(again.entries) == then
    assert differences(tmp_path) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("moa:\n  counsel:\n    members: [custom/red]\n", "There is no mixture `council`"),
        ("moa:\n  counsel:\n    members: [custom/red]\n", "Did you mean `counsel`?"),
        ("moa:\n  council:\n    aggregator: custom/all\n", "needs `members`"),
        ("moa:\n  council:\n    members: [custom/red]\n    aggregator: moa/council\n", "a single model"),
        ("", "There is no mixture `council`"),
    ],
)
async def test_a_mixture_that_is_none_is_told_with_its_setting(tmp_path, more, said):
    async with place(tmp_path, council, COUNCIL, more=more) as here:
        ended = await here.say("Who wins?")

        assert ended.outcome is Outcome.FAILED
        assert said in ended.text


async def test_a_mixture_is_no_member_and_no_auxiliary_model(tmp_path):
    more = MOA.replace("custom/red", "moa/council") + "auxiliary:\n  title:\n    model: moa/council\n"
    async with place(tmp_path, council, Options(model="moa/council", titles=True), more=more) as here:
        assert (await here.say("Who wins?")).text == "I heard blue."
        await here.runtime.settled()

        assert any("moa/council is a mixture, which only answers conversations" in text for text in await notices(here))
        assert [row.model for row in await rows_of(here) if row.purpose == "title"] == ["all"]
