"""What one reading of the settings made."""

from pathlib import Path

from hermes_agent.app.opening import Options
from hermes_agent.core.events import Outcome, PrefixFrozen
from hermes_agent.core.section import estimate_tokens, tools_text
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.usage import GroupBy
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, counting, place, settle_home
from tests.gateway.harness import eventually


async def test_one_that_fails_at_the_end_of_a_run_keeps_nobody_else_from_hearing_of_it(tmp_path: Path):
    async with place(tmp_path, [Say("Hello.")]) as here:

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        heard = list[str]()
        now = here.runtime.snapshots.now
        now.afterwards = (broken, *now.afterwards, lambda record, *_: heard.append(record.id))

        assert (await here.say("Hi")).text == "Hello."
        await eventually(lambda: len(heard) == 1)


MOST_TOKENS = 4_000
MOST_TOKENS_SMALL = 3_000


async def test_the_default_prefix_is_small(tmp_path):
    """System and tools with everything that is built in, by bytes / 4."""
    async with place(tmp_path, [Say("Hello.")]) as here:
        await here.say("Hi")
        (frozen,) = [entry.event for entry in await here.log() if isinstance(entry.event, PrefixFrozen)]
        stored = (await here.runtime.store.prefixes.get(frozen.hash)).prefix

        assert estimate_tokens(stored.system) + estimate_tokens(tools_text(stored.tools)) <= MOST_TOKENS
        body = here.server.exchanges[0].body
        assert estimate_tokens(str(body["tools"])) + estimate_tokens(body["messages"][0]["content"]) <= MOST_TOKENS


async def test_the_prefix_of_a_small_window_is_smaller(tmp_path):
    """Soul and project file as long as they may be, notes full, and every tool that is built in."""
    async with place(tmp_path, [Say("Hello.")], more="  window: 8192\n") as here:
        home = here.runtime.home
        home.soul_file.write_text("I am somebody. " * 2_000)
        (home.root / "memories").mkdir(exist_ok=True)
        (home.root / "memories" / "MEMORY.md").write_text("The person likes tabs.")
        (tmp_path / "work" / "AGENTS.md").write_text("Run the tests. " * 4_000)
        await here.say("Hi")
        (frozen,) = [entry.event for entry in await here.log() if isinstance(entry.event, PrefixFrozen)]

        assert sum(section.tokens for section in frozen.sections) <= MOST_TOKENS_SMALL


async def test_how_a_reply_is_read_is_told_beside_the_message_and_taken_back_where_another_run_is_read_otherwise(
    tmp_path,
):
    alone = Options(attended=False, reading="It is printed.")
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        for options in (alone, alone, Options()):
            async with another(home, server, options) as here:
                await here.say("Hi")

    told = [[note for note in asked.notes if "This run alone" in note] for asked in server.asked]
    assert [len(notes) for notes in told] == [1, 1, 2]
    assert "Nobody answers questions in it: decide, and say what you assumed. It is printed." in told[2][0]
    assert "## This run alone\nNothing any more." in told[2][1]
    assert len({asked.system for asked in server.asked}) == 1


async def test_the_demo_model_is_started_when_it_is_first_asked_and_once(tmp_path):
    async with serving(openai_model([])) as nobody:
        home = settle_home(tmp_path / "home", nobody.url)
        home.config_file.write_text("model:\n  default: demo/scripted\n")
        async with another(home, nobody) as here:
            assert (await here.say("Hi")).outcome is Outcome.ANSWERED
            assert (await here.say("Hi again")).outcome is Outcome.ANSWERED
            assert nobody.exchanges == []


async def test_limits_come_from_the_settings(tmp_path):
    more = "agent:\n  max_turns: 2\n  max_seconds: 60\n"

    def script(heard):
        return Call("todo", {}) if heard.use_tools else Say("So far.")

    async with place(tmp_path, script, more=more) as here:
        ended = await here.say("Go")

        assert (ended.outcome, ended.reason, len(here.server.exchanges)) == (Outcome.LIMIT, "turn limit", 3)


async def test_a_deadline_ends_a_model_that_hangs(tmp_path):
    async with place(tmp_path, [Hang(headers=False)], more="agent:\n  max_seconds: 0.3\n") as here:
        ended = await here.say("Go")

        assert (ended.outcome, ended.reason) == (Outcome.LIMIT, "time limit")


async def test_every_call_has_its_row_in_the_ledger(tmp_path):
    async with place(tmp_path, [Call("todo", {}), Say("Done.")]) as here:
        await here.say("Go")
        totals = await here.runtime.store.usage.totals(GroupBy.SESSION, session=here.record.id)

        assert sum(total.calls for total in totals) == 2
