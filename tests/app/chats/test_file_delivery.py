"""A file that a run has is handed over once, as a slot of the chat that its session is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.app.chats.file_delivery import FileDelivery, SendTools
from hermes_agent.core.chat import Attachment
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.providers.demo.script import Say
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.schema import collect
from tests.gateway.harness import harness
from tests.tools.bench import Bench


async def test_a_call_that_is_made_again_hands_nothing_over_twice(tmp_path: Path):
    (tmp_path / "plot.png").write_bytes(b"\x89PNG")
    async with harness(tmp_path, [Say("Hello.")]) as here:
        await here.ask("Hi")
        (record,) = await here.store.sessions.list()
        hand_over = FileDelivery(store=lambda: here.store)
        file = Attachment(path=str(tmp_path / "plot.png"), name="plot.png", media_type="image/png")
        for _ in range(2):
            await hand_over(record.id, "k:file", file)
        await here.shown(2)
        with pytest.raises(ToolError, match="no chat"):
            await hand_over("nobody", "k2:file", file)
        await here.rest()

        assert [each.file for each in here.platform.chats.of("1")] == ["", "plot.png"]


class Desk:
    """What was handed over, by its key."""

    def __init__(self) -> None:
        self.given: dict[str, tuple[str, Attachment]] = {}

    async def __call__(self, session: str, key: str, file: Attachment) -> None:
        self.given[key] = session, file


def bench(folder: Path) -> tuple[Bench, Desk]:
    desk, guard = Desk(), Guard(home=folder / "home", person=folder / "person")
    work = folder / "work"
    work.mkdir()
    return Bench(collect([SendTools(guard=guard, hand_over=desk)])[0], work), desk


async def test_a_file_is_handed_over_as_what_it_is(tmp_path: Path) -> None:
    here, desk = bench(tmp_path)
    (here.workspace / "plot.png").write_bytes(b"\x89PNG")

    said = await here("send_file", path="plot.png", caption="The *plot*")

    path = str(here.workspace / "plot.png")
    file = Attachment(path=path, name="plot.png", media_type="image/png", caption="The *plot*")
    assert desk.given == {"s1-call_1:file": ("s1", file)}
    assert said.startswith("plot.png (4 bytes) is on its way")
    tool = here.tools["send_file"]
    assert tool.facts({"path": "plot.png"}, str(here.workspace)).effect is Effect.KEYED
    assert tool.needs == {Capability.FS_READ, Capability.MESSAGE}


@pytest.mark.parametrize(
    ("name", "why"), [("none.txt", "No such file"), ("empty.txt", "is empty"), (".", "not a file")]
)
async def test_what_cannot_be_sent_is_told(tmp_path: Path, name: str, why: str) -> None:
    here, desk = bench(tmp_path)
    (here.workspace / "empty.txt").touch()

    with pytest.raises(ToolError, match=why):
        await here("send_file", path=name)
    assert not desk.given


async def test_what_may_not_be_read_may_not_be_sent(tmp_path: Path) -> None:
    here, desk = bench(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".env").write_text("TOKEN=1")
    (here.workspace / "harmless.txt").symlink_to(tmp_path / "home" / ".env")

    with pytest.raises(Refused):
        await here("send_file", path="harmless.txt")
    assert not desk.given
