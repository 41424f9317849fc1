"""A skill is used by its slash: slots, words, variables, several at once, commands where it is trusted."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.skills.depot import State
from hermes_agent.skills.invoke import commands_of, hash_of, invoke, preloaded
from hermes_agent.skills.library import NoSkill
from hermes_agent.skills.skill import Occasion
from tests.skills.shelf import Shelf, put, shelf

SLOTS = """metadata:
  hermes:
    parameters:
      - {name: branch, default: main}
      - {name: times, type: whole, default: "1"}
      - {name: why, description: The reason}
"""


async def ran(command: str) -> str:
    return f"<{command}>"


async def use(here: Shelf, line: str) -> str:
    found = await invoke(here.library, line, workspace="", session="s1", run=ran, occasion=Occasion())
    return "" if found is None else found.text


async def test_words_and_variables_are_put_in(tmp_path: Path):
    folder = put(tmp_path / "home", "tea", body="${HERMES_SKILL_DIR} ${HERMES_SESSION_ID}: $ARGUMENTS {{unknown}}")
    async with shelf(tmp_path) as here:
        assert f"{folder} s1: green, no sugar {{{{unknown}}}}" in await use(here, "/tea green, no sugar")


async def test_slots_take_names_order_and_defaults(tmp_path: Path):
    put(tmp_path / "home", "ship", body="{{branch}} {{ times }} {{why}}", more=SLOTS)
    async with shelf(tmp_path) as here:
        assert "main 1 late" in await use(here, "/ship why=late")
        assert "dev 3 it is late now" in await use(here, "/ship dev 3 it is late now")
        assert "dev 2 a b" in await use(here, "/ship times=2 dev 'a b'")
        with pytest.raises(ToolError, match="needs `why`"):
            await use(here, "/ship dev")
        with pytest.raises(ToolError, match="must be a whole number"):
            await use(here, "/ship dev many x")


@pytest.mark.parametrize(("given", "kept"), [("yes", "yes"), ("OFF", "no")])
async def test_a_switch_is_yes_or_no(tmp_path: Path, given: str, kept: str):
    more = "metadata: {hermes: {parameters: [{name: dry, type: switch}, {name: rate, type: number, default: '.5'}]}}\n"
    put(tmp_path / "home", "a", body="{{dry}} {{rate}}", more=more)
    async with shelf(tmp_path) as here:
        assert f"{kept} .5" in await use(here, f"/a dry={given}")
        with pytest.raises(ToolError, match="yes or no"):
            await use(here, "/a dry=maybe")


async def test_several_are_stacked_and_the_words_belong_to_the_last(tmp_path: Path):
    for name in ("one", "two"):
        put(tmp_path / "home", name, body=f"{name}: [$ARGUMENTS]")
    async with shelf(tmp_path) as here:
        found = await invoke(
            here.library, "/one /two do it /three", workspace="", session="", run=ran, occasion=Occasion()
        )

    assert found is not None
    assert (found.names, found.words) == (("one", "two"), "do it /three")
    assert "one: []" in found.text
    assert "two: [do it /three]" in found.text


@pytest.mark.parametrize("line", ["/nothing", "/etc/hosts", "words /tea", "/", ""])
async def test_what_names_no_skill_is_none(tmp_path: Path, line: str):
    put(tmp_path / "home", "tea")
    async with shelf(tmp_path) as here:
        assert await invoke(here.library, line, workspace="", session="", run=ran, occasion=Occasion()) is None


async def test_commands_run_where_the_owner_trusts_this_text_and_never_what_was_said(tmp_path: Path):
    put(tmp_path / "home", "log", body="Log: !`git log` $ARGUMENTS {{x}}", more=SLOTS.replace("why", "x"))
    async with shelf(tmp_path) as here:
        skill = await here.library.read(await here.library.find("log"))
        assert commands_of(skill) == ["git log"]
        assert "[not run: `git log`; `hermes skills trust log`" in await use(here, "/log x=!`rm`")

        await here.library.state.change(lambda _: State(trusted={"log": hash_of(skill)}))
        said = await use(here, "/log x=!`rm`")
        assert "Log: <git log>" in said
        assert "<rm>" not in said

        put(tmp_path / "home", "log", body="Log: !`git push`")
        await here.library.forget()
        assert "[not run: `git push`" in await use(here, "/log")


async def test_skills_are_loaded_before_anything_is_said(tmp_path: Path):
    put(tmp_path / "home", "one", body="First.")
    async with shelf(tmp_path) as here:
        found = await preloaded(here.library, ("one",), workspace="", session="", run=ran, occasion=Occasion())
        assert (found.names, "First." in found.text, found.origin) == (("one",), True, Origin.SKILL)
        with pytest.raises(NoSkill):
            await preloaded(here.library, ("none",), workspace="", session="", run=ran, occasion=Occasion())
