import asyncio
from pathlib import Path

from hermes_agent.cli.chat.own_command import MOST_TOLD, OwnCommand, Ran
from hermes_agent.core.messages import Message, Origin, Role, Text
from hermes_agent.core.shown import additions, words_of

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


async def test_it_runs_in_the_folder_with_both_outputs_in_their_order(tmp_path: Path):
    seen: list[str] = []
    command = OwnCommand("pwd; echo oh >&2; echo $MARK; exit 3")

    ran = await command.run(str(tmp_path), {**ENVIRONMENT, "MARK": "mine"}, seen.append)

    assert ran.text == f"{tmp_path}\noh\nmine\n[exit 3]"
    assert [line.strip() for line in seen] == [str(tmp_path), "oh", "mine"]


async def test_it_has_no_input_and_a_stop_ends_all_that_it_started(tmp_path: Path):
    assert (await OwnCommand("cat").run(str(tmp_path), ENVIRONMENT, print)).text == "[exit 0]"
    command = OwnCommand("echo begun; sleep 300 & sleep 300")
    begun = asyncio.Event()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(command.run(str(tmp_path), ENVIRONMENT, lambda _: begun.set()))
        await begun.wait()
        await command.stop()

    assert running.result().text == "begun\n[exit 137, stopped]"


async def test_a_very_long_line_and_a_very_long_output_are_bounded(tmp_path: Path):
    ran = await OwnCommand("head -c 300000 /dev/zero | tr '\\0' x; echo; seq 1 100000").run(
        str(tmp_path), ENVIRONMENT, lambda _: None
    )

    assert ran.output.endswith("100000\n")
    assert len(ran.output) < 300_000


def test_the_model_is_told_what_ran_and_what_it_said_as_outside_text():
    part = Ran(command="make", output="a" * (2 * MOST_TOLD), code=2).part(lambda text: text.replace("a", "b"))

    assert part.origin is Origin.TOOL
    assert part.text.startswith("! make [exit 2]:\nbbb")
    assert "20,000 characters are left out" in part.text
    message = Message(role=Role.USER, parts=(part, Text(text="why?", origin=Origin.OWNER)))
    assert (words_of(message), additions(message)) == ("why?", ["! make [exit 2], 3 lines"])
