"""The prefix: made once, kept, and the same ever after."""

import pytest

from hermes_agent.agent.prompt import IDENTITY, Environment, SessionPrompt, facts_of, sections_of
from hermes_agent.core.errors import StoreError
from hermes_agent.core.events import Notice, PrefixFrozen
from hermes_agent.core.messages import ToolSchema
from hermes_agent.core.section import join_sections
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, tool


def schema(name: str) -> ToolSchema:
    return ToolSchema(name=name, description="d", parameters={})


def guidance(*tools: str) -> str:
    sections = sections_of(Environment(), [schema(name) for name in tools])
    return next(section.text for section in sections if section.name == "tool guidance")


def test_of_tools_is_said_what_concerns_those_that_are_offered():
    assert guidance() == guidance("memory") == ""
    assert guidance("terminal", "clarify").splitlines() == [
        "# Your tools",
        "- Check your work by the tests, or by the command that shows it.",
        "- Stop and ask (clarify) only when you cannot go on without the answer.",
    ]
    assert "clarify" not in join_sections(sections_of(Environment(), [schema("patch"), schema("find_tools")]))


def test_sections_stand_in_their_order():
    whole = Environment(identity="I am Soul.", context="CONTEXT", environment="ENV", date="2026-01-02")
    text = join_sections(sections_of(whole, [schema("patch")]))
    words = ("I am Soul.", "# How to work", "# Your tools", "CONTEXT", "ENV", "2026-01-02")
    places = [text.index(word) for word in words]

    assert places == sorted(places)
    assert text.endswith("Today is 2026-01-02.")


def test_without_a_soul_it_is_hermes_and_without_a_date_nothing_is_said_of_it():
    text = join_sections(sections_of(Environment(identity="  \n"), ()))

    assert text.startswith(IDENTITY)
    assert "Today" not in text


def test_each_section_has_its_size_and_the_tools_come_last():
    sections = sections_of(Environment(context="abcd" * 10), ())
    facts = facts_of(sections, (schema("t"),))

    assert [each.name for each in facts][-1] == "tools"
    assert {each.name: each.tokens for each in facts}["project context"] == 10


async def test_the_prefix_of_a_session_is_kept_when_everything_around_it_changes(tmp_path):
    model = ScriptedModel([Say("One."), Say("Two.")])
    harness = Harness(tmp_path, model, (tool("look"),), surroundings=Environment(identity="First.", date="2026-01-01"))
    async with harness.open():
        await harness.say("Hi")
    harness.surroundings = Environment(identity="Second.", date="2026-01-02")
    harness.tools = (tool("look"), tool("more"))
    async with harness.open():
        await harness.say("Hi again")

        assert model.requests[0].prefix == model.requests[1].prefix
        frozen = [entry.event for entry in await harness.log() if isinstance(entry.event, PrefixFrozen)]
        assert [(event.cause, event.hash) for event in frozen] == [("session start", model.requests[0].prefix.hash)]


async def test_the_prefix_is_made_once_for_all_turns_of_a_run(tmp_path):
    async with Harness(tmp_path, ScriptedModel([])).open() as harness:
        asked = []

        async def look() -> Environment:
            asked.append(1)
            return Environment()

        prompt = SessionPrompt(harness.store, (), look)
        async with harness.hermes.holding(harness.session) as journal:
            first = await prompt.prefix(journal.session, journal)
            second = await prompt.prefix(journal.session, journal)

        assert (first, asked) == (second, [1])


async def test_a_prefix_that_the_database_lost_is_an_error_not_another_prefix(tmp_path):
    async with Harness(tmp_path, ScriptedModel([])).open() as harness:
        prompt = SessionPrompt(harness.store, (), None)
        async with harness.hermes.holding(harness.session) as journal:
            journal.session.prefix_hash = "gone"
            with pytest.raises(StoreError, match="is missing from the database"):
                await prompt.prefix(journal.session, journal)


async def test_what_was_left_out_of_the_files_is_told_to_the_person(tmp_path):
    harness = Harness(
        tmp_path, ScriptedModel([Say("Hi")]), surroundings=Environment(warnings=("AGENTS.md: left out.",))
    )
    async with harness.open():
        await harness.say("Hello")
        notices = [entry.event for entry in await harness.log() if isinstance(entry.event, Notice)]

    assert [(notice.text, notice.level) for notice in notices] == [("AGENTS.md: left out.", "warning")]
