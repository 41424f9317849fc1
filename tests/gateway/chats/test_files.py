"""The agent sends a file into the chat in which it was asked for, once, before its reply."""

from pathlib import Path

from hermes_agent.providers.demo.script import Call, Say
from tests.gateway.harness import harness

PEOPLE = "owners: ['7']\nguests: ['9']\n"


def work(path: Path) -> Path:
    folder = path / "home" / "workspace"
    folder.mkdir(parents=True)
    (folder / "plot.png").write_bytes(b"\x89PNG")
    return folder


async def test_a_file_that_was_asked_for_comes_before_the_reply(tmp_path: Path):
    work(tmp_path)
    script = [Call("send_file", {"path": "plot.png", "caption": "As you wished"}), Say("There it is.")]
    async with harness(tmp_path, script, "owners: ['7']\nstream: false\n") as here:
        await here.platform.say("Plot it")
        shown = await here.shown(2)

    assert [(each.file, each.text) for each in shown] == [("plot.png", "As you wished"), ("", "There it is.")]


async def test_a_guest_is_sent_no_file(tmp_path: Path):
    work(tmp_path)
    async with harness(tmp_path, [Call("send_file", {"path": "plot.png"}), Say("I cannot.")], PEOPLE) as here:
        await here.ask("Plot it", user="9", chat="9")

        assert [each.file for each in here.platform.chats.of("9")] == [""]
        assert "There is no tool" in str(here.model.exchanges[-1].request.body)
