"""What guests, strangers and members get in a running gateway: toolsets, commands and codes as the settings say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Role
from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.gateway.harness import Harness, eventually, harness

PEOPLE = "owners: ['1']\nmembers: ['7']\nguests: ['9']\ngroups: ['5']\n"


def offered(here: Harness) -> set[str]:
    """The tools that the model was offered last."""
    return {tool.name for tool in here.model.asked[-1].tools}


async def test_a_guest_has_the_tools_of_guests_and_no_others(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Hello."), PEOPLE) as here:
        await here.ask("Hi", user="9", chat="9")
        assert offered(here) == {"todo", "memory", "session_search", "clarify"}

        await here.ask("Hi", user="7", chat="7")
        assert {"terminal", "write_file"} <= offered(here)


async def test_the_tools_of_guests_are_as_the_settings_say(tmp_path: Path):
    more = "tools:\n  guest:\n    enabled: [files]\n    disabled: [memory]\n"
    async with harness(tmp_path, lambda _: Say("Hello."), PEOPLE, more=more) as here:
        await here.ask("Hi", user="9", chat="9")

        assert "read_file" in offered(here)
        assert not {"terminal", "memory"} & offered(here)


async def test_a_tool_that_a_guest_has_not_is_not_run_whatever_the_model_calls(tmp_path: Path):
    def script(heard: Heard) -> Say | Call:
        if heard.last.role is Role.TOOL:
            return Say(f"Told: {heard.last.parts}")
        return Call("terminal", {"command": "touch done"})

    async with harness(tmp_path, script, f"{PEOPLE}stream: false\n", more="approvals:\n  mode: off\n") as here:
        await here.ask("Run it", user="9", chat="9")
        assert "no tool `terminal`" in str([shown.text for shown in here.platform.chats.of("9")])
        assert not (tmp_path / "home/workspace/done").exists()


RIGHTS = f"{PEOPLE}owner_commands: [title]\nguest_commands: [status]\n"


@pytest.mark.parametrize(
    ("user", "line", "may"),
    [
        ("1", "/title Mine", True),
        ("7", "/title Mine", False),
        ("7", "/cost", True),
        ("9", "/status", True),
        ("9", "/help", False),
        ("9", "/title Mine", False),
        ("9", "/stop", False),
    ],
)
async def test_who_has_which_command_is_as_the_settings_say(tmp_path: Path, user: str, line: str, may: bool):
    async with harness(tmp_path, lambda _: Say("Hello."), RIGHTS) as here:
        assert ("You may not use" not in await here.ask(line, user=user, chat=user)) is may


async def test_a_fourth_stranger_gets_no_code_and_a_fifth_wrong_one_locks(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Hello."), PEOPLE) as here:
        texts = [await here.ask("Hi", user=f"2{number}", chat=f"2{number}") for number in range(3)]
        await here.platform.say("Hi", user="23", chat="23")
        await here.platform.say("Hi again", user="20", chat="20")
        await here.rest()
        assert not here.platform.chats.of("23")
        assert len(here.platform.chats.of("20")) == 1

        pairing = here.store.pairing
        for _ in range(5):
            assert await pairing.approve("AAAAAAAA") is None
        with pytest.raises(HermesError, match="for an hour"):
            await pairing.approve(texts[0].split("approve ")[1].split("`")[0])
        await here.platform.say("Hello?", user="20", chat="20")
        await here.rest()
        assert not here.model.exchanges


async def test_a_stranger_gets_no_sign_for_a_press_an_edit_or_a_deletion(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Hello."), PEOPLE) as here:
        await here.platform.say("Changed", user="99", chat="99", edited=True, source_id="99:1")
        await here.platform.say("/stop", user="99", chat="5", group=True)
        await here.platform.say("Hi", user="7", chat="5", group=True, addressed=True, bot=True)
        await eventually(lambda: here.platform.received() == 3)

        assert not here.platform.chats.messages
        assert not here.model.exchanges
