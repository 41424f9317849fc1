"""What a runtime says of its parts."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.settings import Settings
from hermes_agent.app.system import System
from hermes_agent.core.errors import ConfigError
from hermes_agent.core.events import Outcome
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import open_secrets
from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.tools.schema import from_function
from tests.app.place import place
from tests.gateway.harness import eventually


async def renew(runtime: System, more: str) -> None:
    """Save these settings besides, and have them hold."""
    with runtime.home.config_file.open("a") as file:
        file.write(more)
    loaded = load(runtime.home, Settings)
    assert not loaded.problems
    await runtime.snapshots.renew(loaded, open_secrets(runtime.home))


async def test_a_run_under_way_keeps_its_limits_and_the_next_one_has_the_new_ones(tmp_path: Path):
    slow = Answer(pieces=(Call("todo", {}),), pace=Pace(first=0.5))
    async with place(tmp_path, [slow, Say("Done."), Call("todo", {}), Say("So far.")]) as here:
        before = await here.tell("Hi")
        await eventually(lambda: len(here.server.asked) == 1)
        first = here.runtime.snapshots.now
        await renew(here.runtime, "agent:\n  max_turns: 1\n")
        assert (first.users, here.runtime.snapshots.count) == (1, 2)

        assert (await here.ended(before)).text == "Done."
        await eventually(lambda: here.runtime.snapshots.count == 1)
        assert (await here.say("Again")).outcome is Outcome.LIMIT


async def test_settings_that_nothing_can_be_made_of_change_nothing(tmp_path: Path):
    async with place(tmp_path, [Say("Hello.")]) as here:
        now = here.runtime.snapshots.now
        with pytest.raises(ConfigError, match="fils"):
            await renew(here.runtime, "tools:\n  cli:\n    enabled: [fils]\n")

        assert here.runtime.snapshots.now is now
        assert (await here.say("Hi")).text == "Hello."


async def test_what_is_open_is_closed_at_the_end_with_runs_that_go_on(tmp_path: Path):
    hanging = Answer(pieces=(Say("Late."),), pace=Pace(first=30))
    async with place(tmp_path, [hanging]) as here:
        await here.tell("Hi")
        await eventually(lambda: len(here.server.asked) == 1)
        await renew(here.runtime, "agent:\n  max_turns: 3\n")
        assert here.runtime.snapshots.count == 2

    assert here.runtime.snapshots.count == 1


async def test_hooks_that_are_added_are_told_of_the_next_message(tmp_path: Path):
    async with place(tmp_path, [Say("One."), Say("Two.")]) as here:
        await here.say("Hi")
        assert here.runtime.hooks is None
        await renew(here.runtime, "hooks:\n  guard:\n    on: ['message:received']\n    command: 'true'\n")

        assert here.runtime.hooks is not None
        assert (await here.say("Hi")).text == "Two."


async def test_who_learns_now_goes_on_with_what_was_left_in_line(tmp_path: Path):
    async with open_system_that_reviews(tmp_path) as runtime:
        runtime.learner.ring()
        old = runtime.learner
        await renew(runtime, "agent:\n  max_turns: 3\n")
        await eventually(lambda: "work" in vars(runtime.learner))

        assert not old.works
        assert runtime.learner is not old
        await runtime.learner.run()
        await renew(runtime, "agent:\n  max_parallel: 3\n".removeprefix("agent:\n"))
        await eventually(lambda: runtime.snapshots.count == 1)


def open_system_that_reviews(tmp_path: Path):
    (tmp_path / "config.yaml").write_text("model: {default: demo/scripted}\n")
    return open_system(Home(root=tmp_path, base=tmp_path), Options(reviews=True))


async def test_a_tool_that_a_dialect_cannot_take_is_named_with_the_reason(tmp_path):
    async def fine(path: str) -> str:
        return path

    whole = from_function("fine", fine)
    broken = replace(whole, signature=replace(whole.signature, name="broken", parameters={"type": "string"}))
    options = Options(model="demo/scripted", extra_tools=(whole, broken))
    async with open_system(Home(root=tmp_path, base=tmp_path), options) as runtime:
        (aside,) = runtime.not_offered()
        with_none = runtime.not_offered("nobody/knows")

    assert (aside.name, "instead of an object" in aside.reason) == ("broken", True)
    assert with_none == ()
