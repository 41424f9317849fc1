"""How the agent works, shown and chosen from a conversation."""

from dataclasses import replace

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.providers.demo.script import Call, Say
from tests.app.place import counting, place


async def test_a_session_reasons_at_its_own_level_until_it_is_taken_back(tmp_path):
    async with place(tmp_path, counting) as here:
        assert "Reasoning: medium (`model.reasoning_effort`)" in await here.text("/reasoning")
        assert await here.text("/effort HIGH", busy=True) == "From its next run on this session reasons at high."
        assert "Reasoning: high (in this session)" in await here.text("/reasoning")
        with pytest.raises(HermesError, match="There is no level `lots`"):
            await here.text("/reasoning lots")

        await here.text("/reasoning off")
        assert "medium" in await here.text("/reasoning")


async def test_the_level_reaches_the_model(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.text("/reasoning low")
        await here.say("Hi")
        agent = here.runtime.snapshots.apart
        async with here.runtime.hermes.holding(here.record.id) as journal, agent(here.record, journal) as made:
            assert made.effort == "low"


async def test_what_may_run_is_shown_and_withdrawn(tmp_path):
    script = [Call("terminal", {"command": "rm -rf build$NONE"}), Say("Done.")]
    async with place(tmp_path, script) as here:
        text = await here.text("/permissions")
        assert "Questions  ask (`approvals.mode`)" in text
        assert "For good   nothing" in text
        await here.text("/yolo")
        assert "`/yolo`" in await here.text("/permissions")
        with pytest.raises(HermesError, match="No approval is called"):
            await here.text("/permissions withdraw 123")


async def test_settings_are_shown_changed_and_in_force_at_once(tmp_path):
    async with place(tmp_path, counting) as here:
        assert "model.default = custom/m" in await here.text("/config")
        assert (await here.text("/config agent.max_turns")).startswith("agent.max_turns = ")

        assert "agent.max_turns = 7" in await here.text("/config agent.max_turns 7")

        assert here.runtime.settings.agent.max_turns == 7
        with pytest.raises(ConfigError, match=r"Did you mean `agent\.max_turns`"):
            await here.text("/config agent.max_turn")


async def test_settings_are_the_owner_s_and_never_shown_where_others_read(tmp_path):
    async with place(tmp_path, counting) as here:
        inbound = here.inbound("/config")
        member = replace(inbound, principal=Principal(platform="api", user="7", standing=Standing.MEMBER))
        group = replace(inbound, conversation=Conversation(platform="telegram", chat_kind="group", chat="5"))

        with pytest.raises(HermesError, match="Only the owner"):
            await perform(Desk(runtime=here.runtime, record=here.record, inbound=member))
        with pytest.raises(HermesError, match="Others read along"):
            await perform(Desk(runtime=here.runtime, record=here.record, inbound=group))


async def test_init_asks_for_an_agents_md_in_few_words(tmp_path):
    async with place(tmp_path, counting) as here:
        done = await here.type("/init mind the tests")

        assert done is not None
        assert done.submit is not None
        assert "AGENTS.md" in done.submit.text
        assert done.submit.text.endswith("mind the tests")
        assert len(done.submit.text) < 500
