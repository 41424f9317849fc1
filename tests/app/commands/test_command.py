"""How a line becomes a command."""

import asyncio

import pytest

from hermes_agent.app.command_queue import parse_command
from hermes_agent.app.commands import ALIASES, COMMANDS, ELSEWHERE
from hermes_agent.app.commands.command import command_of, find_command
from hermes_agent.core.errors import HermesError
from tests.app.place import counting, place


@pytest.mark.parametrize("line", ["/etc/hosts", "/", "hello /new", "", "/tmp/x y", "//", "/new/x"])
def test_a_path_is_no_command(line: str):
    assert find_command(line) is None


@pytest.mark.parametrize(("line", "near"), [("/halp", "/help"), ("/contnue", "/continue"), ("/zzzz", "See `/help`")])
def test_an_unknown_command_names_the_nearest(line: str, near: str):
    with pytest.raises(HermesError, match=near):
        find_command(line)


@pytest.mark.parametrize("line", ["/saves", "/pluginss", "/batch", "/xlsx-x"])
def test_a_far_off_guess_is_not_made(line: str):
    with pytest.raises(HermesError, match="See `/help`"):
        find_command(line)


@pytest.mark.parametrize("name", ALIASES)
def test_another_name_leads_to_its_command(name: str):
    assert find_command(f"/{name} x") == (command_of(ALIASES[name]), "x")
    assert name not in COMMANDS
    assert parse_command(f"/{name} x") == (ALIASES[name], True)  # Else rules about commands would not hold for it.


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_done_elsewhere_is_told_in_a_sentence(name: str):
    assert name not in COMMANDS
    assert name not in ALIASES
    with pytest.raises(HermesError) as told:
        find_command(f"/{name}")
    assert str(told.value) == f"There is no command `/{name}`. {ELSEWHERE[name]}"


def test_a_command_gets_the_rest_of_the_line():
    command, rest = find_command("  /title  A  long title ")

    assert (command.name, rest) == ("title", "A  long title")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_name_of_its_line_in_the_table(name: str):
    assert find_command(f"/{name}")[0].name == name


async def test_words_are_no_command(tmp_path):
    async with place(tmp_path, counting) as here:
        assert await here.type("What is /etc/hosts?") is None


@pytest.mark.parametrize("line", ["/new", "/resume x", "/branch", "/undo", "/retry", "/continue", "/model demo/x"])
async def test_what_changes_the_conversation_has_to_wait_for_the_run(tmp_path, line):
    async with place(tmp_path, counting) as here:
        with pytest.raises(HermesError, match=r"does not work during a run. `/stop` ends the run."):
            await here.type(line, busy=True)


async def test_commands_of_two_people_do_not_wait_for_each_other(tmp_path):
    async with place(tmp_path, counting) as here:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(here.text("/status")) for _ in range(10)]

        assert len({task.result() for task in tasks}) == 1
